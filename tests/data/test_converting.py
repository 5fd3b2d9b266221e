"""Converters on small files in the upstream format."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evenmatch.data.catalogue.catalogue import data_sets
from evenmatch.data.catalogue.convert import CONVERTERS
from evenmatch.data.catalogue.pickles import read_pickle
from evenmatch.errors import DataError
from tests.support.upstream import convert


def test_every_converter_that_a_set_names_is_there() -> None:
    named = [each.converter for each in data_sets() if each.converter]
    assert set(CONVERTERS) >= set(named)


def test_graphs_keep_their_lines_and_lose_comments(tmp_path: Path) -> None:
    text = (
        "# AMR release\n\n# ::id a.1 ::annotator x\n# ::snt One two .\n# ::save-date Thu\n"
        "(c / chapter\n  :mod 1)\n\n# ::id a.2\n# ::snt Two .\n(t / two)\n"
    )
    made, _ = convert("amr", {"wuhao050698/AMR/amr-bank-struct-v3.0.txt": text}, tmp_path)
    assert list(map(json.loads, made["lpp_v3.0.jsonl.gz"])) == [
        {"id": "a.1", "snt": "One two .", "amr": "(c / chapter\n  :mod 1)"},
        {"id": "a.2", "snt": "Two .", "amr": "(t / two)"},
    ]


def test_trees_over_many_lines_come_on_one(tmp_path: Path) -> None:
    text = "(ROOT\n  (NP (NN a)\n    (NN b)))\n\n(ROOT (NP (NN c)))"
    made, _ = convert("gum", {"amir-zeldes/gum/const/GUM_x.ptb": text}, tmp_path)
    assert list(map(json.loads, made["gum_const.jsonl.gz"])) == [
        {"doc": "GUM_x", "n": 0, "tree": "(ROOT (NP (NN a) (NN b)))"},
        {"doc": "GUM_x", "n": 1, "tree": "(ROOT (NP (NN c)))"},
    ]


def test_files_kept_unchanged_are_equal_byte_by_byte(tmp_path: Path) -> None:
    files = {"r/x/words.json": "{\n}\r\n", "r/x/dev.conllu": "1\tß\r\n\u2028\n"}
    convert("unchanged", files, tmp_path)
    assert (tmp_path / "made" / "words.json").read_bytes() == b"{\n}\r\n"
    packed = (tmp_path / "made" / "dev.conllu.gz").read_bytes()
    assert gzip.decompress(packed) == files["r/x/dev.conllu"].encode()


def test_two_rows_that_follow_each_other_are_a_fair_pair(tmp_path: Path) -> None:
    folder = "txsun1997/Metric-Fairness/measuring_bias/data"
    text = "sys\tref\tBLEU\tchrF\t\nhe\tit\t0.5\t0.25\t\nshe\tit\t0.75\t1\t\n"
    made, _ = convert("fairness", {f"{folder}/age.tsv": text}, tmp_path)
    [record] = map(json.loads, made["age.jsonl.gz"])
    assert (record["cand_a"], record["cand_b"], record["ref_b"]) == ("he", "she", "it")
    assert (record["scores_a"], record["scores_b"]["chrF"]) == ({"BLEU": 0.5, "chrF": 0.25}, 1)


def test_a_fair_row_without_its_partner_is_an_error(tmp_path: Path) -> None:
    path = "txsun1997/Metric-Fairness/measuring_bias/data/age.tsv"
    with pytest.raises(DataError, match=r"age\.tsv has 1 rows, expected an even number"):
        convert("fairness", {path: "sys\tref\tBLEU\nhe\tit\t0.5\n"}, tmp_path)


def test_pairs_without_a_label_are_left_out(tmp_path: Path) -> None:
    record = {"sentence1": "a", "sentence2": "b", "gold_label": "neutral", "pairID": "1"}
    text = "\n".join(map(json.dumps, (record, {**record, "gold_label": "-"})))
    folder = "Deltaus/sBiMPM/snli_1.0"
    files = {f"{folder}/snli_1.0_{part}.jsonl": text for part in ("dev", "test")}
    made, _ = convert("snli", files, tmp_path)
    assert made["dev.jsonl.gz"] == ['{"s1":"a","s2":"b","label":"neutral"}']


def wmt(year: int, pairs: str, scores: str) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    top, test = f"AIPHES/ACL20-Reference-Free-MT-Evaluation/WMT{year}", f"newstest20{year}"
    for pair in pairs.split():
        source, target = pair.split("-")
        files[f"{top}/source/{test}-{source}{target}-src.{source}"] = "eins \nzwei\neins \n"
        files[f"{top}/references/{test}-{source}{target}-ref.{target}"] = "one\ntwo\none\n"
        for system in ("b.1", "Z.x.2"):
            outputs = f"\ufeff{system} 1\n\n{system} 3\n"
            files[f"{top}/system-outputs/{pair}/{test}.{system}.{pair}"] = outputs
    return {**files, f"{top}/DA-syslevel.csv": "LP HUMAN SYSTEM\n" + scores}


def test_wmt_outputs_are_joined_with_their_segments(tmp_path: Path) -> None:
    pairs = "cs-en de-en et-en fi-en ru-en tr-en zh-en en-de"
    scores = "en-de 0.5 b.1\ncs-en 0.10 b.1\ncs-en -0.1 Z.x.2\nen-cs 1 b.1\n"
    made, _ = convert("wmt18", wmt(18, pairs, scores), tmp_path)
    first, second, _ = map(json.loads, made["cs-en.jsonl.gz"])
    outputs = {"Z.x.2": "\ufeffZ.x.2 1", "b.1": "\ufeffb.1 1"}
    assert first == {"sid": 1, "src": "eins ", "ref": "one", "out": outputs}
    assert second["out"] == {"Z.x.2": "", "b.1": ""}
    assert made["system_scores.tsv"] == [
        "lp\tsystem\tz",
        "cs-en\tb.1\t0.10",
        "cs-en\tZ.x.2\t-0.1",
        "en-de\tb.1\t0.5",
    ]


def test_relative_ranks_find_their_segment_by_its_texts(tmp_path: Path) -> None:
    files = wmt(19, "de-en fi-en gu-en kk-en lt-en ru-en zh-en en-de", "")
    better = {"sys_name": "b.1", "sys": "b.1 3", "scores": {}}
    worse = {"sys_name": "Z.x.2", "sys": "Z.x.2 3", "scores": {}}
    rank = {"0": {"src": "eins", "ref": "one", "better": better, "worse": worse}}
    for pair in ("gu-en", "kk-en", "lt-en"):
        files[f"neulab/BARTScore/WMT/{pair}/data.pkl"] = pickle.dumps(rank)
    made, _ = convert("wmt19", files, tmp_path)
    assert made["kk-en.rr.tsv.gz"] == ["sid\tbetter\tworse", "3\tb.1\tZ.x.2"]


def test_files_of_different_length_are_an_error(tmp_path: Path) -> None:
    files = wmt(18, "cs-en de-en et-en fi-en ru-en tr-en zh-en en-de", "")
    top = "AIPHES/ACL20-Reference-Free-MT-Evaluation/WMT18"
    short = {f"{top}/references/newstest2018-csen-ref.en": "one\n"}
    with pytest.raises(
        DataError, match=r"upstream files have an unexpected format \(ValueError: zip"
    ):
        convert("wmt18", {**files, **short}, tmp_path)


class Evil:
    """Run code when unpickled, which must not happen."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("exit 1",)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    files = {"neulab/BARTScore/SUM/REALSumm/data.pkl": pickle.dumps({"1": Evil()})}
    with pytest.raises(DataError, match=r"not a pickle of plain values: it calls \w+\.system"):
        convert("realsumm", files, tmp_path)


_SCALAR = b"cnumpy.core.multiarray\nscalar\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04]",
        b"no pickle",
        _SCALAR + b"}X\x01\x00\x00\x00aNsb.",  # sets the attributes of a function
        _SCALAR + b"(N}X\x0c\x00\x00\x00__defaults__)stb.",
    ],
)
def test_a_damaged_pickle_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"data\.pkl is not a pickle of plain values"):
        convert("realsumm", {"neulab/BARTScore/SUM/REALSumm/data.pkl": content}, tmp_path)


def test_numbers_of_numpy_in_a_pickle_are_numbers(tmp_path: Path) -> None:
    outputs = {"A": {"sys_summ": "s", "scores": {"litepyramid_recall": np.float64(0.3), "x": 1}}}
    document = {"src": "long", "ref_summ": "short", "sys_summs": outputs}
    files = {"neulab/BARTScore/SUM/REALSumm/data.pkl": pickle.dumps({7: document})}
    made, _ = convert("realsumm", files, tmp_path)
    [record] = map(json.loads, made["data.jsonl.gz"])
    assert (record["id"], record["refs"]) == ("7", ["short"])
    assert record["out"] == {"A": {"text": "s", "human": {"litepyramid_recall": 0.3}}}


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for place in ("one", "two"):
        files = {"r/x/dev.conllu": "1\n"}
        convert("unchanged", files, tmp_path / place)
    made = [(tmp_path / place / "made" / "dev.conllu.gz").read_bytes() for place in ("one", "two")]
    assert made[0] == made[1]


def test_a_small_pickle_cannot_allocate_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "memo.pkl"
    path.write_bytes(b"Nr\xff\xff\xff\x7f.")
    assert read_pickle(path) is None
