from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenmatch.data.graphs import GraphText, Triples
from evenmatch.errors import InputError
from evenmatch.studies.experiment import Experiment
from evenmatch.studies.graph_to_text import (
    FINE_TUNING,
    GRAPH_ARMS,
    PRETRAINING,
    START,
    XENT,
    GraphCorpus,
    GraphDesign,
    GraphRun,
    GraphStudy,
    load_little_prince,
    load_webnlg,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import (
    GraphExperiment,
    check_graph_claims,
    describe_power,
    example_table,
    graph_difference_table,
    graph_report,
    graph_score_table,
    score_graph_arms,
)
from tests.support.tuning import NAMES, SMALL

pytest.importorskip("tensorboard", reason="tensorboard is not installed")

FEW = GraphDesign(
    arms=(XENT, "BL-R", "F_DISC"),
    seeds=(1, 2),
    pretraining=replace(PRETRAINING, epochs=3, batch=6, rate=0.02, longest_target=12, shape=SMALL),
    fine_tuning=replace(
        FINE_TUNING, epochs=1, batch=8, rate=0.002, longest_target=12, look_every=2
    ),
)


def graphs(count: int, seed: int) -> tuple[GraphText, ...]:
    draw = np.random.default_rng(seed)
    made = []
    for i in range(count):
        a, b = (str(name) for name in draw.choice(NAMES, 2))
        graph = Triples(((a, "nearTo", b),))
        made.append(GraphText(graph, (f"{a} is near {b}.", f"{b} is near {a}."), f"graph {i}"))
    return tuple(made)


def corpus() -> GraphCorpus:
    return GraphCorpus("places", graphs(24, 0), graphs(6, 1), graphs(9, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> GraphExperiment:
    found = Experiment(GraphStudy(corpus(), FEW), tmp_path_factory.mktemp("study"))
    assert len(found()) == len(FEW.runs())
    return found


def test_every_arm_of_a_seed_goes_on_from_the_same_start() -> None:
    nodes = GraphDesign().runs()
    assert [node.arm for node in nodes] == 3 * [START, *GRAPH_ARMS]
    first = FEW.settings_for(GraphRun(2))
    assert (first.rl_weight, first.seed) == (0.0, 2)
    assert FEW.settings_for(GraphRun(2, XENT)).rl_weight == 0.0
    assert FEW.settings_for(GraphRun(2, "F_DISC")).rl_weight == 0.3
    assert FEW.settings_for(GraphRun(2, "F_DISC")).own_embeddings


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"arms": ("RL",)}, "no arm 'RL'; known: XENT"), ({"seeds": ()}, "at least one arm and one")],
)
def test_a_design_that_cannot_be_is_refused(
    settings: dict[str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        GraphDesign(**settings)  # type: ignore[arg-type]  # wrong on purpose


def test_what_was_run_is_not_run_again_though_the_weights_are_gone(
    runs: GraphExperiment, tmp_path: Path
) -> None:
    for path in (*runs.folder.glob("cells/*"), *runs.folder.glob("texts/*")):
        place = tmp_path / path.relative_to(runs.folder)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
    again = Experiment(GraphStudy(corpus(), FEW), tmp_path, should_stop=pytest.fail)
    assert again() == runs.results()


def test_other_settings_are_another_run(runs: GraphExperiment) -> None:
    other = replace(FEW, fine_tuning=replace(FEW.fine_tuning, rate=0.001))
    found = Experiment(GraphStudy(corpus(), other), runs.folder)
    assert found.load_result(GraphRun(1)) is not None
    assert found.load_result(GraphRun(1, XENT)) is None


def test_results_are_small_files(runs: GraphExperiment) -> None:
    for node in FEW.runs():
        assert runs.load_result(node) is not None
    files = [*runs.folder.glob("cells/*"), *runs.folder.glob("texts/*")]
    assert max(path.stat().st_size for path in files) < 5000
    assert not list(runs.folder.glob("models/*/checkpoint.pt"))


def test_stopped_anywhere_the_experiment_comes_out_the_same(
    runs: GraphExperiment, tmp_path: Path
) -> None:
    told: list[str] = []
    few = replace(FEW, arms=("F_DISC",), seeds=(1,))
    for _ in range(40):
        steps = iter(range(5))
        parts = Experiment(
            GraphStudy(corpus(), few),
            tmp_path,
            lambda: next(steps, 9) >= 4,  # noqa: B023
            told.append,
        )
        if len(parts()) == 2:
            break
    wanted = {each.run: each for each in runs.results()}
    assert all(each.outputs == wanted[each.run].outputs for each in parts.results())
    assert all(each.evaluations == wanted[each.run].evaluations for each in parts.results())
    assert any("paused after step" in line for line in told)


@pytest.mark.model("minilm", "wordnet")
def test_tables_have_the_papers_shape(runs: GraphExperiment) -> None:
    found = score_graph_arms(runs)
    header, *lines = graph_score_table(found)
    assert header == ["", "seeds", "BLEU", "chrF", "METEOR", "BERTScore", "f_disc", "repeated"]
    assert [line[0] for line in lines] == [START, XENT, "BL-R", "F_DISC"]
    assert {line[1] for line in lines} == {"2"}
    rows = graph_difference_table(found)
    assert [row[:3] for row in rows[1:3]] == [["BLEU", "BL-R", "2"], ["BLEU", "F_DISC", "2"]]
    assert [line.split(" of at least")[0] for line in describe_power(found)] == [
        "with this number of seeds, a t-test detects differences in BLEU"
    ]


@pytest.mark.model("minilm", "wordnet")
def test_an_arm_does_not_differ_from_itself(runs: GraphExperiment) -> None:
    first = score_graph_arms(runs)[1]
    seen = first.minus(first, "BLEU")
    assert (seen.value, seen.low, seen.high) == (0.0, 0.0, 0.0)
    assert first.seed_differences(first, "chrF") == [0.0, 0.0]
    assert first.permutation_p_value(first, "BLEU") == 1.0


@pytest.mark.model("minilm", "wordnet")
def test_scores_are_kept_and_not_worked_out_again(
    runs: GraphExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = graph_score_table(score_graph_arms(runs))
    monkeypatch.setattr("evenmatch.studies.graph_to_text_report.score_metrics", pytest.fail)
    assert graph_score_table(score_graph_arms(runs)) == before


@pytest.mark.model("minilm", "wordnet")
def test_the_report_says_what_was_found_and_what_is_missing(runs: GraphExperiment) -> None:
    more = replace(FEW, seeds=(1, 2, 3))
    report = graph_report(Experiment(GraphStudy(corpus(), more), runs.folder), learnt="f_cont")
    assert report.findings[0].startswith("8 runs are done, 4 are not: start seed 3, XENT seed 3")
    assert any(line.startswith("rewarding F_DISC beats cross") for line in report.findings)
    assert {"start", "validation-bleu", "reward-f_disc"} == set(report.figures) - {"reward-bl-r"}
    assert "learnt" in report.tables["scores"][0]
    assert list(check_graph_claims([])) == []


def test_examples_show_what_each_arm_writes_for_the_same_graph(runs: GraphExperiment) -> None:
    _, *lines = example_table(runs, runs.results())
    assert [line[1] for line in lines[:5]] == ["graph", "reference", XENT, "BL-R", "F_DISC"]
    assert len({line[0] for line in lines}) == 6
    assert len({line[0] for line in lines[:5]}) == 1


def test_the_public_corpora_keep_their_tests_apart(data: Path) -> None:
    for found, sizes in (
        (load_webnlg(), (8174, 200, 1017)),
        (load_little_prince(), (1262, 100, 200)),
    ):
        assert (len(found.train), len(found.valid), len(found.test)) == sizes
        parts = [{each.id for each in some} for some in (found.train, found.valid, found.test)]
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]


def test_the_smaller_corpus_takes_more_passes() -> None:
    assert (
        make_graph_design("amr", tuple(GRAPH_ARMS), (1,)).pretraining.epochs
        > make_graph_design("webnlg", (XENT,), (1,)).pretraining.epochs
    )
