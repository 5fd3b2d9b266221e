from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog
from tools.pages.graph_to_text import judge_overfitting

import evenmatch as em
from evenmatch.data.graphs import GraphText, Triples
from evenmatch.errors import InputError
from evenmatch.stats.paired import ResampledScore, minimum_detectable_difference
from evenmatch.studies.experiment import (
    NOT_DECIDED,
    NOT_SEEN,
    SEEN,
    ArmScores,
    Experiment,
    RunResult,
)
from evenmatch.studies.graph_claims import (
    GRAPH_CLAIMS,
    check_graph_claims,
    describe_power,
    judge_claim,
    judge_likeness,
)
from evenmatch.studies.graph_to_text import (
    ALL_ARMS,
    BEST,
    FINE_TUNING,
    GRAPH_ARMS,
    LAST,
    PRETRAINING,
    START,
    XENT,
    GraphCorpus,
    GraphDesign,
    GraphRun,
    GraphStudy,
    add_beam_texts,
    load_little_prince,
    load_webnlg,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import (
    GraphExperiment,
    example_table,
    graph_difference_table,
    graph_figures,
    graph_report,
    graph_score_table,
    has_loop,
    invented_share,
    length_ratio,
    score_graph_arms,
    template_text,
    triple_coverage,
)
from evenmatch.training.generator.loss import policy_reward
from evenmatch.training.generator.policy import make_policy
from evenmatch.types import Pair
from tests.support.tuning import NAMES, SMALL, save_tiny_llama

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")

SHORT: dict[str, Any] = {"longest_target": 8, "bf16": False}


def few(model: str) -> GraphDesign:
    return GraphDesign(
        arms=(XENT, "BL-R", "F_DISC"),
        seeds=(1, 2),
        pretraining=replace(PRETRAINING, model=model, steps=4, batch=6, rate=0.01, **SHORT),
        fine_tuning=replace(FINE_TUNING, steps=3, rate=0.002, look_every=2, **SHORT),
    )


def graphs(count: int, seed: int) -> tuple[GraphText, ...]:
    draw = np.random.default_rng(seed)
    made = []
    for i in range(count):
        a, b = (str(name) for name in draw.choice(NAMES, 2))
        graph = Triples(((a, "nearTo", b),))
        texts = (f"{a} is near {b}.", f"{b} is near {a}.")
        made.append(GraphText(graph, texts, f"test/{'AB'[i % 3 == 0]}/1/{i}"))
    return tuple(made)


def corpus() -> GraphCorpus:
    return GraphCorpus("places", graphs(24, 0), graphs(6, 1), graphs(9, 2), ("B",))


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> GraphDesign:
    return few(save_tiny_llama(tmp_path_factory.mktemp("llama")))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, design: GraphDesign) -> GraphExperiment:
    found = Experiment(GraphStudy(corpus(), design), tmp_path_factory.mktemp("study"))
    assert len(found()) == len(design.runs())
    return found


def test_every_arm_of_a_seed_goes_on_from_the_same_start() -> None:
    nodes = GraphDesign().runs()
    assert [node.arm for node in nodes] == 3 * [START, *GRAPH_ARMS]
    every = GraphDesign(tuple(ALL_ARMS))
    first = every.settings_for(GraphRun(2))
    assert (first.rl_weight, first.seed, first.model) == (0.0, 2, "smollm2")
    assert every.settings_for(GraphRun(2, XENT)).rl_weight == 0.0
    assert every.settings_for(GraphRun(2, "F_DISC")).rl_weight == 0.3
    assert every.settings_for(GraphRun(2, "F_DISC")).own_embeddings
    # Common random numbers: the arms of a seed see the same examples, which the start did not.
    seeds = {every.settings_for(GraphRun(2, arm)).seed for arm in ALL_ARMS}
    assert len(seeds) == 1
    assert first.seed not in seeds


@pytest.mark.parametrize(
    ("arm", "changes"),
    [
        ("F_DISC 0.1", {"rl_weight": 0.1}),
        ("F_DISC x4", {"samples": 4, "baseline": "leave_one_out"}),
        ("contextual f_cont", {"reward": "f_cont", "own_embeddings": False}),
        ("only F_BERT", {"reward": "bertscore", "rl_weight": 1.0}),
    ],
)
def test_further_arms_are_settings_of_the_same_runner(arm: str, changes: dict[str, Any]) -> None:
    settings = GraphDesign((arm,)).settings_for(GraphRun(1, arm))
    assert {name: getattr(settings, name) for name in changes} == changes


def reward_by_hand(arm: str, table: Any, ids: tuple[list[int], list[int]]) -> float:
    """The reward of each arm on given token ids and input embeddings, from its definition."""
    x, y = (table[each] for each in ids)
    norms = [np.linalg.norm(side, axis=1) for side in (x, y)]
    similar = (x / norms[0][:, None]) @ (y / norms[1][:, None]).T
    if arm == "F_BERT":
        p, r = similar.max(1).mean(), similar.max(0).mean()
        return float(2 * p * r / (p + r))
    if arm == "F_DISC":
        total = similar[linear_sum_assignment(-similar)].sum()
        return float(2 * total / (len(x) + len(y)))
    m, n = similar.shape
    masses = [each / each.sum() for each in norms]
    rows, columns = np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))
    found = linprog(-similar.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate(masses))
    assert found.x is not None
    credit = found.x.reshape(m, n) * similar
    p, r = (credit.sum(1) / masses[0]).mean(), (credit.sum(0) / masses[1]).mean()
    return float(2 * p * r / (p + r))


@pytest.mark.parametrize("arm", ["F_BERT", "F_CONT", "F_DISC"])
def test_the_reward_of_an_arm_is_its_formula_on_the_policys_tokens(arm: str) -> None:
    """Norm masses dropped, special tokens kept or arms swapped: the value is another."""
    texts = ("Cork is near is near Dover.", "Dover is near Cork and Essen.")
    policy = make_policy(SMALL, [*texts] * 9, seed=1)  # its tokenizer adds a closing token
    with torch.no_grad():  # embeddings of different norms
        weight = policy.model.get_input_embeddings().weight
        weight.mul_(torch.linspace(0.5, 3, len(weight))[:, None])
    table = weight.detach().double().numpy()
    ids = tuple(policy.tokenizer(text)["input_ids"][:-1] for text in texts)
    reward = policy_reward(ALL_ARMS[arm]["reward"], policy, own_embeddings=True)
    values = {each: reward_by_hand(each, table, ids) for each in ("F_BERT", "F_CONT", "F_DISC")}
    assert reward([Pair(texts[0], (texts[1],))])[0] == pytest.approx(values[arm], abs=1e-5)
    assert len({round(value, 3) for value in values.values()}) == 3


def test_the_reward_bl_r_is_sentence_bleu_with_add_one_smoothing() -> None:
    policy = make_policy(SMALL, ["a b c d e"] * 9, seed=1)
    reward = policy_reward(ALL_ARMS["BL-R"]["reward"], policy, own_embeddings=True)
    # 5 words of 6: 5/5 unigrams, (3 + 1)/(4 + 1), (1 + 1)/(3 + 1), (0 + 1)/(2 + 1); brevity 1 - 6/5
    expected = math.exp(1 - 6 / 5) * (1.0 * 4 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert reward([Pair("a b c e f", ("a b c d e f",))])[0] == pytest.approx(expected, abs=1e-6)


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
    runs: GraphExperiment, design: GraphDesign, tmp_path: Path
) -> None:
    for path in (*runs.folder.glob("cells/*"), *runs.folder.glob("texts/*")):
        place = tmp_path / path.relative_to(runs.folder)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
    again = Experiment(GraphStudy(corpus(), design), tmp_path, should_stop=pytest.fail)
    assert again() == runs.results()


def test_other_settings_are_another_run(runs: GraphExperiment, design: GraphDesign) -> None:
    other = replace(design, fine_tuning=replace(design.fine_tuning, rate=0.001))
    found = Experiment(GraphStudy(corpus(), other), runs.folder)
    assert found.load_result(GraphRun(1)) is not None
    assert found.load_result(GraphRun(1, XENT)) is None


def test_results_are_small_files(runs: GraphExperiment, design: GraphDesign) -> None:
    for node in design.runs():
        assert runs.load_result(node) is not None
    files = [*runs.folder.glob("cells/*"), *runs.folder.glob("texts/*")]
    assert max(path.stat().st_size for path in files) < 5000
    assert not list(runs.folder.glob("models/*/checkpoint.pt"))
    assert [each.parent.name for each in sorted(runs.folder.glob("models/*/model"))] == [
        "start-seed-1",
        "start-seed-2",
    ]


def test_a_run_stores_the_texts_of_its_best_and_its_last_step(runs: GraphExperiment) -> None:
    for result in runs.results():
        found = result.outputs
        assert len(found[BEST]) == len(found[LAST]) == 9
        steps = dict(result.evaluations)
        assert found["steps"][BEST] == max(steps, key=lambda step: steps[step])
        assert found["steps"][LAST] == max(steps)
        assert all(value > 0 for value in found["cross_entropy"].values())
        if found["steps"][BEST] == found["steps"][LAST]:
            assert found[BEST] == found[LAST]


def test_stopped_anywhere_the_experiment_comes_out_the_same(
    runs: GraphExperiment, design: GraphDesign, tmp_path: Path
) -> None:
    told: list[str] = []
    less = replace(design, arms=("F_DISC",), seeds=(1,))
    for _ in range(9):
        steps = iter(range(4))
        parts = Experiment(
            GraphStudy(corpus(), less),
            tmp_path,
            lambda: next(steps, 9) >= 2,  # noqa: B023
            told.append,
        )
        if len(parts()) == 2:
            break
    wanted = {each.run: each for each in runs.results()}
    assert all(each.outputs == wanted[each.run].outputs for each in parts.results())
    assert all(each.evaluations == wanted[each.run].evaluations for each in parts.results())
    assert any("paused after step" in line for line in told)


def test_beam_texts_are_stored_beside_the_others_and_change_no_recipe(
    runs: GraphExperiment, design: GraphDesign, tmp_path: Path
) -> None:
    less = replace(design, arms=("F_DISC",), seeds=(1,))
    study = GraphStudy(corpus(), less, beams=2)
    assert study.recipe(GraphRun(1)) == runs.study.recipe(GraphRun(1))
    found = Experiment(study, tmp_path)()
    wanted = {each.run: each.outputs for each in runs.results()}
    for each in found:
        texts = each.outputs.pop("beam 2")
        assert each.outputs == wanted[each.run]
        assert len(texts) == 9
        assert texts != each.outputs[LAST]


@pytest.mark.model("minilm", "wordnet")
def test_beam_texts_are_added_for_models_that_are_still_there(
    runs: GraphExperiment, design: GraphDesign, tmp_path: Path
) -> None:
    shutil.copytree(runs.folder, tmp_path, dirs_exist_ok=True)
    later = Experiment(GraphStudy(corpus(), design, beams=2), tmp_path, should_stop=lambda: False)
    add_beam_texts(later)
    assert len(later.results()) == len(design.runs())
    with_beams = [each for each in later.results() if "beam 2" in each.outputs]
    assert [each.run.arm for each in with_beams] == [START, START]
    model = later.model_folder(GraphRun(1)) / "model"
    lines = [each.graph.line for each in corpus().test]
    assert with_beams[0].outputs["beam 2"] == em.generate(model, lines, beams=2)
    assert [each.arm for each in score_graph_arms(later, which="beam 2")] == [START]


@pytest.mark.model("minilm", "wordnet")
def test_tables_have_the_papers_shape(runs: GraphExperiment) -> None:
    found = score_graph_arms(runs)
    header, *lines = graph_score_table(found)
    metrics = ["BLEU", "chrF", "METEOR", "BERTScore", "f_disc"]
    assert header == ["", "seeds", *metrics, "length", "covered", "invented", "loops", "repeated"]
    assert [line[0] for line in lines] == ["template", "copy", START, XENT, "BL-R", "F_DISC"]
    assert [line[1] for line in lines] == ["", "", "2", "2", "2", "2"]
    rows = graph_difference_table(found)
    assert [row[:3] for row in rows[1:3]] == [["BLEU", "BL-R", "2"], ["BLEU", "F_DISC", "2"]]
    (line,) = describe_power(found)
    assert line.startswith("with 2 seeds, a t-test detects differences from XENT with power 0.8")
    assert all(f"({name})" in line for name in ("BLEU", "METEOR", "chrF", "repeated"))
    first = found[3]
    seen = first.minus(first, "BLEU")
    assert (seen.value, seen.low, seen.high) == (0.0, 0.0, 0.0)
    assert first.permutation_p_value(first, "BLEU") == 1.0


@pytest.mark.model("minilm", "wordnet")
def test_scores_are_kept_and_not_worked_out_again(
    runs: GraphExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = graph_score_table(score_graph_arms(runs))
    monkeypatch.setattr("evenmatch.studies.graph_to_text_report.score_metrics", pytest.fail)
    assert graph_score_table(score_graph_arms(runs)) == before


@pytest.mark.model("minilm", "wordnet")
def test_the_report_says_what_was_found_and_what_is_missing(
    runs: GraphExperiment, design: GraphDesign
) -> None:
    more = replace(design, seeds=(1, 2, 3))
    report = graph_report(Experiment(GraphStudy(corpus(), more), runs.folder), learnt="f_cont")
    assert report.findings[0].startswith("8 runs are done, 4 are not; run the study again")
    assert report.findings[1:3] == ["not done: start, seed 3", "not done: XENT, seed 3"]
    assert any(line.startswith("F_DISC beats cross-entropy alone") for line in report.findings)
    assert set(report.figures) == {"validation-bleu", "reward-bl-r", "reward-f_disc"}
    assert "learnt" in report.tables["scores"][0]
    assert {"scores, seen categories", "scores, unseen categories"} < set(report.tables)
    assert list(check_graph_claims([])) == []


def arm(name: str, *values: float, spread: float = 0.01) -> ArmScores:
    nothing = np.zeros(1)
    draws = np.linspace(-spread, spread, 41)
    every = tuple(ResampledScore(v, v + draws, nothing, nothing, abs) for v in values)
    return ArmScores(name, tuple(range(len(values))), {"BLEU": every}, resample_seeds=True)


@pytest.mark.parametrize(
    ("one", "less", "verdict"),
    [
        ((0.5, 0.6), (0.3, 0.3), SEEN),
        ((0.1, 0.2), (0.3, 0.3), "reversed"),
        ((0.301, 0.299), (0.3, 0.3), NOT_SEEN),
        ((0.5, 0.29), (0.3, 0.3), NOT_DECIDED),
        ((0.5,), (0.3,), NOT_DECIDED),
    ],
    ids=["above", "below", "smaller than claimed", "seeds disagree", "one seed"],
)
def test_a_claim_is_judged_by_graphs_and_seeds(
    one: tuple[float, ...], less: tuple[float, ...], verdict: str
) -> None:
    difference, found = judge_claim(arm("a", *one), arm("b", *less), "BLEU", 0.02)
    assert found == verdict
    assert difference.value == pytest.approx(np.mean(one) - np.mean(less))


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ((0.3, 0.31), (0.3, 0.3), SEEN),
        ((0.5, 0.6), (0.3, 0.3), NOT_SEEN),
        ((0.35, 0.3), (0.3, 0.3), NOT_DECIDED),
        ((0.3,), (0.3,), NOT_DECIDED),
    ],
    ids=["within the margin", "outside", "across it", "one seed"],
)
def test_a_claim_of_likeness_needs_the_interval_within_the_margin(
    one: tuple[float, ...], other: tuple[float, ...], verdict: str
) -> None:
    arms = [arm("a", *one, spread=0.005), arm("b", *other, spread=0.005)]
    for first, second in (arms, arms[::-1]):
        assert judge_likeness(first, second, "BLEU", 0.03)[1] == verdict


def test_a_claim_compares_the_arms_it_names() -> None:
    """Each claim's difference is of its first arm less its second, by the paper's metrics."""
    values = {name: 0.1 * n for n, name in enumerate(ALL_ARMS)}
    names = ("BLEU", "METEOR", "chrF", "repeated")

    def scored(name: str) -> ArmScores:
        made = arm(name, values[name], values[name])
        return replace(made, resampled=dict.fromkeys(names, made.resampled["BLEU"]))

    claims = list(check_graph_claims([scored(name) for name in ALL_ARMS]))
    assert [each.statement for each in claims] == [each.statement for each in GRAPH_CLAIMS]
    for each, claim in zip(claims, GRAPH_CLAIMS, strict=True):
        wanted = {"repeated"} if claim.kind == "repeats" else {"BLEU", "METEOR", "chrF"}
        assert set(each.results) == wanted
        for difference, _ in each.results.values():
            assert difference.value == pytest.approx(values[claim.one] - values[claim.other])


def curve(name: str, seed: int, *bleu: float) -> RunResult:
    evaluations = [(10 * (i + 1), value) for i, value in enumerate(bleu)]
    return RunResult(GraphRun(seed, name), evaluations, {"reward": [0.0]}, 1.0, {})


@pytest.mark.parametrize(
    ("plain", "rewarded", "verdict"),
    [
        ((1.0, 3.0, 2.0), (1.0, 2.0, 3.0), SEEN),
        ((1.0, 3.0, 2.0), (3.0, 2.0, 1.0), NOT_SEEN),
        ((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), NOT_DECIDED),
    ],
    ids=["F_DISC goes on", "F_DISC stops too", "XENT does not overfit"],
)
def test_overfitting_is_judged_by_the_best_steps(
    plain: tuple[float, ...], rewarded: tuple[float, ...], verdict: str
) -> None:
    every = [
        each for s in (1, 2) for each in (curve(XENT, s, *plain), curve("F_DISC", s, *rewarded))
    ]
    assert judge_overfitting(every).startswith(f"{verdict} (")
    assert judge_overfitting(every[:2]).startswith(f"{NOT_DECIDED} (")
    assert judge_overfitting(every[:1]) == "not run"


def test_validation_curves_are_of_seeds_that_all_arms_have() -> None:
    """A seed that one arm lacks would move the other's curve."""
    both = [curve(XENT, 1, 0.1, 0.2), curve("F_DISC", 1, 0.1, 0.2)]
    figure = graph_figures(both)["validation-bleu"]
    assert graph_figures([*both, curve(XENT, 2, 0.8, 0.9)])["validation-bleu"] == figure
    assert graph_figures([*both[:1], curve(XENT, 2, 0.8, 0.9)])["validation-bleu"] != figure


def test_intervals_over_seeds_are_wider_than_over_graphs_alone() -> None:
    several = arm("a", 0.2, 0.4, 0.6)
    over_graphs = replace(several, resample_seeds=False)
    assert several.mean("BLEU").high - several.mean("BLEU").low > 0.2
    assert over_graphs.mean("BLEU").high - over_graphs.mean("BLEU").low < 0.03


def test_with_one_seed_the_power_is_that_of_the_test_graphs() -> None:
    (line,) = describe_power([arm("XENT", 0.4), arm("F_DISC", 0.4, spread=0.03)])
    spread = 2.8 * 100 * float(np.std(np.linspace(-0.02, 0.02, 41)))
    assert f"differences in BLEU of at least {spread:.2f} would be detected" in line


def test_the_seeds_needed_are_as_many_as_detect_the_wanted_difference() -> None:
    plain, other = arm("XENT", 0.4, 0.4, 0.4), arm("F_DISC", 0.400, 0.404, 0.408)
    (line,) = describe_power([plain, other])
    needed = int(line.split("undetected; ")[1].split()[0])
    least = [100 * minimum_detectable_difference(0.004, n) for n in (needed - 1, needed)]
    assert least[0] > 0.7 >= least[1]
    assert f"at least {100 * minimum_detectable_difference(0.004, 3):.2f} (BLEU)" in line


def test_the_power_over_graphs_compares_runs_of_the_same_seed() -> None:
    both, wide = arm("XENT", 0.4, 0.4), arm("F_DISC", 0.4, spread=0.03)
    first, second = arm("XENT", 0.4, spread=0.5).resampled["BLEU"][0], both.resampled["BLEU"][1]
    plain = replace(both, resampled={"BLEU": (first, second)})
    (line,) = describe_power([plain, replace(wide, seeds=(1,))])
    (alone,) = describe_power([arm("XENT", 0.4), wide])
    assert line == alone


AIRPORT = GraphText(
    Triples((("Aarhus_Airport", "cityServed", "Aarhus"), ("Aarhus", "country", "Denmark"))),
    ("Aarhus Airport serves Aarhus in Denmark since 1943.",),
)


@pytest.mark.parametrize(
    ("measure", "text", "value"),
    [
        (triple_coverage, "Aarhus airport is in Denmark.", 1.0),
        (triple_coverage, "It lies in Denmark.", 1 / 3),
        (invented_share, "In 1943, Aarhus had 2 Ports.", 0.5),
        (invented_share, "Nothing here.", 0.0),
        (length_ratio, "a b c d e f g h i", 1.0),
        (has_loop, "very very very good", 1.0),
        (has_loop, "very very good", 0.0),
    ],
)
def test_measures_of_form_are_computed_by_hand(
    measure: Callable[[str, GraphText], float], text: str, value: float
) -> None:
    assert measure(text, AIRPORT) == pytest.approx(value)


def test_the_template_says_each_triple() -> None:
    wanted = "The city served of Aarhus Airport is Aarhus. The country of Aarhus is Denmark."
    assert template_text(AIRPORT) == wanted


def test_examples_show_what_each_arm_writes_for_the_same_graph(runs: GraphExperiment) -> None:
    _, *lines = example_table(runs, runs.results())
    assert [line[1] for line in lines[:6]] == ["graph", "reference", START, XENT, "BL-R", "F_DISC"]
    assert len({line[0] for line in lines}) == 6
    assert len({line[0] for line in lines[:6]}) == 1


def test_the_public_corpora_keep_their_tests_apart(data: Path) -> None:
    for found, sizes in (
        (load_webnlg(), (7486, 300, 1017)),
        (load_little_prince(), (1262, 100, 200)),
    ):
        assert (len(found.train), len(found.valid), len(found.test)) == sizes
        parts = [{each.id for each in some} for some in (found.train, found.valid, found.test)]
        assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]


def test_unseen_categories_are_in_the_test_set_alone(data: Path) -> None:
    found = load_webnlg()
    kinds = [{each.id.split("/")[1] for each in some} for some in (found.train, found.valid)]
    assert not (kinds[0] | kinds[1]) & set(found.unseen)
    assert found.unseen_rows.sum() == 86
    assert len(found.with_test_size(400).test) == 400


def test_the_smaller_corpus_takes_more_passes() -> None:
    assert (
        make_graph_design("amr", tuple(GRAPH_ARMS), (1,)).pretraining.epochs
        > make_graph_design("webnlg", (XENT,), (1,)).pretraining.epochs
    )
