"""What users of neighbouring tools asked for, where no other test asks it in the same words.

Most of these troubles are tested with the part that they concern: empty and long texts in
`scoring/test_edges.py`, batches in `scoring/test_invariance.py`, transposed references in
`scoring/test_input.py`, the shell in `cli/test_score_command.py`, rewards in
`integrations/test_reward_shims.py`, significance in `evaluation/test_compare.py`, equal results of
the shell and Python in `cli/test_parity.py`.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

import evenmatch as em
from evenmatch.cli.main import COMMANDS, build_app
from tests.cli.conftest import Command, command
from tests.support.model_families import FolderOf

__all__ = ["command"]

ROOT = Path(__file__).parent.parent
TEXTS = ["the quick brown fox", "a cat sat on the mat", "rain in the north", "prices fell by 3"]


def test_a_model_in_a_folder_has_its_last_layer_and_its_baseline(
    folder_of: FolderOf, command: Command
) -> None:
    metric = f"bertscore(model={str(folder_of('bert'))!r}, layer='last')"
    plain = em.score(TEXTS, TEXTS[::-1], metric)
    assert "layer=4" in plain.signature
    Path("texts.txt").write_text("".join(text + "\n" for text in TEXTS))
    said = command("baseline", "texts.txt", "-m", metric, "--pairs", "6", "--json")
    assert said.code == 0
    rescaled = em.score(TEXTS, TEXTS[::-1], json.loads(said.out)["spec"])
    assert rescaled.mean < plain.mean


@pytest.mark.model
def test_whether_special_tokens_are_matched_is_stated_and_an_option() -> None:
    def units(metric: str) -> set[str]:
        return set(em.align("the cat", "a dog", metric).candidate_units)

    special = {"[CLS]", "[SEP]"}
    assert special <= units("bertscore")
    assert "pieces(marks=True)" in em.score(["a"], ["b"], "bertscore").signature
    for metric in ("bertscore(marks=False)", "f_disc", "f_cont"):
        assert not special & units(metric)


@pytest.mark.model
def test_one_to_one_and_rescaled_scores_spread_where_greedy_ones_crowd() -> None:
    candidates = [
        "the cat sat on the mat",
        "the the the the cat",
        "the mat sat on the cat and the mat",
        "stocks fell in the north today",
    ]
    references = ["the cat sat on the mat"] * len(candidates)
    found = em.score(candidates, references, ["bertscore", "f_disc", "f_cont"])
    ranges = {name: np.ptp(scores.values) for name, scores in found.items()}
    assert ranges["f_disc"] > ranges["bertscore"]
    low = "align(units=pieces(marks=True), vectors=transformer(layer=4), scoring=rescale(low=0.4))"
    assert np.ptp(em.score(candidates, references, low).values) > ranges["bertscore"]


def test_transport_problems_of_a_call_are_solved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    solve = em.Emd.__call__

    def counted(solver: em.Emd, problems: Sequence[em.Problem]) -> list[em.Alignment]:
        counts.append(len(problems))
        return solve(solver, problems)

    monkeypatch.setattr(em.Emd, "__call__", counted)
    texts = [f"{text} {n}" for n in range(25) for text in TEXTS]
    em.score(texts, texts[::-1], "align(vectors=hashed, alignment=emd)")
    assert counts == [100]


def test_the_package_itself_needs_no_heavy_library_and_bounds_none_from_above() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [re.match(r"[\w.-]+", each)[0].lower() for each in project["dependencies"]]  # type: ignore[index]  # each begins with a name
    assert not {"torch", "transformers", "pandas", "pyarrow", "spacy", "sacrebleu"} & set(needed)
    assert "numpy>=2.0" in project["dependencies"]
    assert not [each for each in project["dependencies"] if "<" in each or "==" in each]


@pytest.mark.parametrize(
    "policy",
    ["average='micro'", "duplicates='wrong'", "reference_duplicates='keep'", "no_reference='skip'"],
)
def test_how_documents_and_duplicates_count_is_in_the_signature(policy: str) -> None:
    usual, other = em.build("keyphrase_f1"), em.build(f"keyphrase_f1({policy})")
    assert policy not in usual.signature
    assert policy in other.signature


def test_habits_of_other_tools_are_served() -> None:
    assert list(inspect.signature(em.score).parameters)[:3] == [
        "candidates",
        "references",
        "metric",
    ]
    one = em.score(["a b"], ["a c"], "align(vectors=hashed)")[0]
    assert None not in (one.value, one.precision, one.recall)
    for name in ("for_trl", "for_openrlhf", "for_verl"):
        assert callable(getattr(em, name)("rouge1"))


def test_one_idea_has_one_option_in_every_command() -> None:
    spellings: dict[str, set[tuple[str, ...]]] = {}

    def collect(command: Any) -> None:
        for each in getattr(command, "commands", {}).values():
            collect(each)
        for each in command.params:
            if each.param_type_name == "option":
                spellings.setdefault(each.name, set()).add(tuple(each.opts))

    collect(typer.main.get_command(build_app(list(COMMANDS))))
    assert {name: found for name, found in spellings.items() if len(found) > 1} == {}
    assert {"published", "level", "subset", "attribute", "out"} <= set(spellings)


def test_two_text_files_without_options_are_told_apart_by_name(command: Command) -> None:
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("a cat\n")
    said = command("score", "a.txt", "b.txt", "-m", "chrf")
    assert said.code == 2
    assert "-c CANDIDATES -r REFERENCES" in said.err


def test_notebooks_show_the_tables_of_a_result(tmp_path: Path) -> None:
    ratings, phrases = tmp_path / "ratings.jsonl", tmp_path / "phrases.jsonl"
    row = {"system": "A", "candidate": "a b", "references": ["a c"]}
    ratings.write_text("".join(json.dumps({**row, "segment": n, "rating": n}) + "\n" for n in "12"))
    phrases.write_text('{"text": "a b", "keyphrases": ["a"], "pred": {"x": ["a"]}}\n')
    for result in (
        em.compare({"A": ["a b"], "B": ["a c"]}, ["a c"], "chrf", resamples=20, trials=20),
        em.correlate("chrf", ratings, level="segment", resamples=20),
        em.score_keyphrases(phrases, "fg", resamples=20, trials=20),
        em.audit("chrf", attributes=["gender"], resamples=20),
    ):
        shown: list[str] = []
        result._repr_pretty_(SimpleNamespace(text=shown.append), False)  # as IPython calls it
        assert shown == [str(result)]
