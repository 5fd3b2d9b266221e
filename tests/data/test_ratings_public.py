"""The public sets: published counts and other checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import read_ratings

pytestmark = pytest.mark.usefixtures("data")


@cache
def rated(name: str) -> dict[str, RatedSet]:
    return {each.subset: each for each in read_ratings(name)}


def shapes(name: str) -> dict[str, tuple[int, int]]:
    return {subset: each.ratings.shape for subset, each in rated(name).items()}


def known(each: RatedSet) -> int:
    return int(np.count_nonzero(~np.isnan(each.ratings)))


def test_wmt15_and_16_have_500_and_560_segments_a_pair() -> None:
    found = shapes("wmt1516-daseg")
    assert {pair: n for pair, (_, n) in found.items() if pair.startswith("wmt15")} == dict.fromkeys(
        [f"wmt15.{lp}-en" for lp in ("cs", "de", "fi", "ru")], 500
    )
    assert [n for pair, (_, n) in found.items() if pair.startswith("wmt16")] == [560] * 6


def test_wmt17_has_560_rated_outputs_a_pair_and_one_system_without_text() -> None:
    assert shapes("wmt17-da") == {
        "cs-en": (4, 3005),
        "de-en": (11, 3004),
        "fi-en": (6, 3002),
        "lv-en": (9, 2001),
        "ru-en": (9, 3001),
        "tr-en": (10, 3007),
        "zh-en": (16, 2001),
    }
    assert {known(each) for each in rated("wmt17-da").values()} == {560}
    chinese = rated("wmt17-da")["zh-en"]
    silent = [s for s, row in zip(chinese.systems, chinese.candidates, strict=True) if None in row]
    assert silent == ["ROCMT.5167"]


def test_wmt18_and_19_have_a_score_for_every_rated_system() -> None:
    assert shapes("wmt18-da") == {
        "cs-en": (5, 2983),
        "de-en": (16, 2998),
        "et-en": (14, 2000),
        "fi-en": (9, 3000),
        "ru-en": (8, 3000),
        "tr-en": (5, 3000),
        "zh-en": (14, 3981),
        "en-de": (16, 2998),
    }
    judged = {
        pair: int(np.count_nonzero(~np.isnan(each.system_ratings)))
        for pair, each in rated("wmt19-da").items()
    }
    counts = (16, 12, 11, 11, 11, 14, 15, 22)
    pairs = ("de-en", "fi-en", "gu-en", "kk-en", "lt-en", "ru-en", "zh-en", "en-de")
    assert judged == dict(zip(pairs, counts, strict=True))
    assert len(rated("wmt19-da")["gu-en"].systems) == 12


def test_wmt19_has_relative_ranks_of_three_pairs() -> None:
    found = {pair: each.ranks for pair, each in rated("wmt19-da").items()}
    counts = {pair: len(ranks.better) for pair, ranks in found.items() if ranks is not None}
    assert counts == {"gu-en": 20110, "kk-en": 9728, "lt-en": 21862}


def test_wmt20_names_human_references_and_outliers_and_has_300_metric_scores_of_pairs() -> None:
    sets = rated("wmt20-da")
    judged = {pair: int((~np.isnan(each.system_ratings)).sum()) for pair, each in sets.items()}
    counts = (12, 13, 11, 10, 7, 14, 6, 12, 14, 17)
    assert list(judged.values()) == list(counts)
    assert sets["zh-en"].outliers == {"WMTBiomedBaseline.183"}
    assert {pair for pair, each in sets.items() if "Human-B.0" in each.humans} == {
        "de-en",
        "ru-en",
        "zh-en",
    }
    assert {name for each in sets.values() for name in each.systems if "uman" in name} == {
        name for each in sets.values() for name in each.humans
    }
    machines = {
        pair: [s not in each.humans | each.outliers for s in each.systems]
        for pair, each in sets.items()
    }
    cells = [
        scores[machines[pair]] for pair, each in sets.items() for scores in each.published.values()
    ]
    assert sum(np.count_nonzero(~np.isnan(scores)) > 2 for scores in cells) == 300


def test_wmt20_has_references_for_800_chinese_segments_and_outputs_of_16_rated_systems() -> None:
    chinese = rated("wmt20-da")["zh-en"]
    assert sum(map(bool, chinese.references)) == 800
    texts = {
        s for s, row in zip(chinese.systems, chinese.candidates, strict=True) if None not in row
    }
    judged = {
        s for s, z in zip(chinese.systems, chinese.system_ratings, strict=True) if not np.isnan(z)
    }
    assert (len(texts & judged), len(texts - judged)) == (16, 3)
    assert judged - texts == {"Human-B.0"}


def test_webnlg_ratings_are_those_that_its_organisers_published() -> None:
    # english_humeval_data_all_teams.json of the challenge's repository, its last two records
    published = {
        ("Correctness", "1773"): 0.29329418615467834,
        ("DataCoverage", "1773"): 0.3175508155103554,
        ("Fluency", "1773"): 0.3865707346953989,
        ("Relevance", "1773"): 0.38244878869661597,
        ("TextStructure", "1773"): 0.17352559735911366,
        ("Correctness", "1777"): 0.6958760360974465,
        ("TextStructure", "1777"): 0.1840670021081092,
    }
    for (criterion, segment), value in published.items():
        each = rated("webnlg2020-human")[criterion]
        cell = each.systems.index("cuni-ufal"), each.segments.index(segment)
        assert each.ratings[cell] == pytest.approx(value, abs=1e-12)


def test_webnlg_has_178_inputs_and_all_but_one_output_of_17_judged() -> None:
    for each in rated("webnlg2020-human").values():
        assert each.ratings.shape == (17, 178)
        assert known(each) == 178 * 17 - 1
        assert each.judgements is not None
        assert len(each.judgements.values) == 8453


def test_summaries_and_data_to_text_have_the_stated_counts() -> None:
    assert shapes("summ-realsumm") == {"litepyramid_recall": (24, 100)}
    criteria = ("coherence", "consistency", "fluency", "relevance")
    assert shapes("summ-summeval") == dict.fromkeys(criteria, (16, 100))
    assert {len(r) for r in rated("summ-summeval")["fluency"].references} == {11}
    counts = {subset.split("/")[0]: n for subset, (_, n) in shapes("d2t-human").items()}
    assert counts == {"bagel": 404, "sfhot": 875, "sfres": 1181}


def test_a_folder_reads_as_its_name_does(data: Path) -> None:
    [by_path] = read_ratings(data / "wmt19-da", subsets=["kk-en"])
    by_name = rated("wmt19-da")["kk-en"]
    assert (by_path.name, by_path.systems) == (by_name.name, by_name.systems)
    assert by_path.candidates == by_name.candidates


def test_mqm_has_6400_rated_outputs_of_8_systems_with_a_reference() -> None:
    chinese = rated("wmt20-mqm")["zh-en"]
    assert chinese.humans == {"Human-A.0", "Human-B.0"}
    systems, _ = chinese.cells(rated=True)
    assert sum(chinese.systems[s] not in chinese.humans for s in systems) == 6400
