from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import Interval
from evenmatch.studies import keyphrase_generation
from evenmatch.studies.experiment import (
    NOT_DECIDED,
    NOT_SEEN,
    REVERSED,
    SEEN,
    Experiment,
    RunResult,
    run_name,
)
from evenmatch.studies.keyphrase_arms import score_keyphrase_arms
from evenmatch.studies.keyphrase_generation import (
    ABLATIONS,
    KEYPHRASE_ARMS,
    MLE,
    KeyphraseCorpus,
    KeyphraseDesign,
    KeyphraseRun,
    KeyphraseStudy,
    baseline_predictions,
    load_keyphrase_corpus,
    remove_overlapping,
)
from evenmatch.studies.keyphrase_generation_report import (
    KeyphraseExperiment,
    ablation_table,
    describe_repetition,
    histogram_shares,
    judge_difference,
    keyphrase_report,
    keyphrase_score_table,
    measure_repetition,
)
from evenmatch.studies.phrase_counts import count_phrases, count_repeated_words
from evenmatch.training.keyphrases.catseq import CatSeqShape
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqSettings,
    CatSeqTrainingSettings,
    Stage,
)
from evenmatch.training.loop import FitSettings, training_threads

pytest.importorskip("torch", reason="torch is not installed")

NOUNS = "tree graph net parser model corpus loss text word code cell gene".split()
KINDS = "neural deep sparse fast random linear robust public".split()
SMALL = KeyphraseDesign(
    arms=(MLE, "RL(F1)", "2RL(FG)"),
    seeds=(1, 2),
    settings=CatSeqSettings(
        words=40,
        longest=40,
        shape=CatSeqShape(embedding=12, hidden=12, attention=12),
        likelihood=CatSeqTrainingSettings(epochs=2, batch=10, rate=0.01, look_every=6),
    ),
    stage=Stage(
        training=CatSeqTrainingSettings(epochs=1, batch=20, rate=0.003, look_every=2, halve=False)
    ),
    scorer={"frozen": 5, "settings": FitSettings(batch=16)},
)


def documents(count: int, seed: int) -> tuple[Document, ...]:
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        kind, noun, other = draw.choice(KINDS), draw.choice(NOUNS), draw.choice(NOUNS)
        text = f"the {other} is old . we study {kind} {noun} here ."
        made.append(Document(text, (f"{kind} {noun}", f"{noun} theory")))
    return tuple(made)


def corpus() -> KeyphraseCorpus:
    return KeyphraseCorpus(
        documents(60, 0), documents(20, 1), {"A": documents(12, 2), "B": documents(9, 3)}
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> KeyphraseExperiment:
    found = Experiment(KeyphraseStudy(corpus(), SMALL), tmp_path_factory.mktemp("study"))
    assert len(found()) == len(SMALL.runs())
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_comes_after_the_one_it_starts_from(shared: bool) -> None:
    design = KeyphraseDesign((*KEYPHRASE_ARMS, *ABLATIONS), (1, 2), shared_start=shared)
    nodes = design.runs()
    assert len(nodes) == 2 * (6 + 2 * 4) - shared
    assert all(nodes.index(design.parent(n)) < nodes.index(n) for n in nodes if n.rewards)
    assert len({run_name(node) for node in nodes}) == len(nodes)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"arms": ("3RL",)}, "no arm '3RL'; known: MLE"), ({"seeds": ()}, "at least one arm and one")],
)
def test_a_design_that_cannot_be_is_refused(
    settings: dict[str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        KeyphraseDesign(**settings)  # type: ignore[arg-type]  # wrong on purpose


def test_what_was_run_is_not_run_again(runs: KeyphraseExperiment) -> None:
    again = Experiment(KeyphraseStudy(corpus(), SMALL), runs.folder, should_stop=pytest.fail)
    assert [r.outputs for r in again()] == [r.outputs for r in runs.results()]


def test_the_page_of_results_lists_missing_runs(
    runs: KeyphraseExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools.pages import keyphrase_generation as page

    (tmp_path / "keyphrases").mkdir()
    monkeypatch.setattr(page, "PAGES", tmp_path)
    monkeypatch.setattr(page, "baseline_predictions", lambda study, folder: {})
    design = replace(SMALL, seeds=(1, 2, 3))
    lines = list(page.body(Experiment(KeyphraseStudy(corpus(), design), runs.folder)))
    done, every = len(SMALL.runs()), len(design.runs())
    told = f"- {done} runs are done, {every - done} are not; run the study again to continue"
    at = lines.index(told)
    assert lines[at + 1] == "- not done: RL(F1), seed 3"
    assert lines.index("## In short") < at < lines.index("## Every run")
    assert any(line.startswith("| rewarding F1 raises F1 beyond likelihood") for line in lines[:at])


def test_the_rate_with_the_best_validation_reward_is_used(runs: KeyphraseExperiment) -> None:
    found = runs.study.load_rate(runs)
    rewards = dict(found["validation"])
    assert set(rewards) == set(SMALL.rates)
    assert rewards[found["rate"]] == max(rewards.values())
    chosen = runs.load_result(SMALL.rate_run)
    assert chosen is not None
    assert max(value for _, value in chosen.evaluations) == rewards[found["rate"]]


def test_a_stage_does_not_evaluate_what_it_starts_from(runs: KeyphraseExperiment) -> None:
    assert min(step for result in runs.results() for step, _ in result.evaluations) > 0


def test_entropy_and_length_of_sampled_outputs_are_recorded(runs: KeyphraseExperiment) -> None:
    result = runs.load_result(SMALL.rate_run)
    assert result is not None
    assert set(result.curves) == {"value", "entropy", "length"}
    assert min(result.curves["length"]) > 1
    assert min(result.curves["entropy"]) > 0


def test_all_seeds_start_from_one_model_if_the_start_is_shared(runs: KeyphraseExperiment) -> None:
    found = score_keyphrase_arms(runs.results(), runs.study.corpus, shared_start=True)
    start = next(each for each in found if each.scores.arm == MLE)
    assert start.scores.seeds == (1, 2)
    assert [run.seed for run in start.runs] == [1]


def test_baselines_are_trained_once(
    runs: KeyphraseExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyphrase_generation, "_published_predictions", lambda corpus: {})
    found = baseline_predictions(runs.study, tmp_path)
    assert set(found) == {"TF-IDF", "candidate ranker"}
    monkeypatch.setattr(keyphrase_generation, "fit_tfidf_ranker", pytest.fail)
    again = baseline_predictions(runs.study, tmp_path)
    assert tuple(again["TF-IDF"]["A"][0]) == found["TF-IDF"]["A"][0]
    table = keyphrase_score_table(score_keyphrase_arms([], runs.study.corpus, found), "present")
    assert [line[:2] for line in table[1:]] == [["TF-IDF", ""], ["candidate ranker", ""]]


def test_the_page_tells_equal_runs_kept_starts_and_overlong_phrases() -> None:
    from tools.pages.keyphrase_generation import describe_results

    one, two = (KeyphraseRun(1, KEYPHRASE_ARMS[arm]) for arm in ("RL(FG)", "2RL(FG)"))
    long = {"A": [["a " * 50], ["b"]]}
    told = list(
        describe_results(
            [
                RunResult(one, [(0, 0.1), (5, 0.2)], {}, 1, long),
                RunResult(two, [(0, 0.2), (5, 0.1)], {}, 1, long),
            ]
        )
    )
    assert told[0] == "2RL(FG) seed 1 is RL(FG) seed 1: all their predictions are equal."
    assert told[1] == "2RL(FG) seed 1 ended with the model that it started from."
    assert "more than 15 words for 50 % of the documents, 50 words long" in told[2]


@pytest.mark.parametrize(
    ("low", "high", "seeds", "verdict"),
    [
        (0.01, 0.02, 3, SEEN),
        (-0.02, -0.01, 3, REVERSED),
        (-0.01, 0.02, 3, NOT_SEEN),
        (-0.01, 0.04, 3, NOT_DECIDED),
        (0.01, 0.02, 2, NOT_DECIDED),
    ],
)
def test_a_verdict_needs_an_interval_and_three_seeds(
    low: float, high: float, seeds: int, verdict: str
) -> None:
    difference = Interval((low + high) / 2, low, high)
    assert judge_difference(difference, 0.03, seeds) == verdict


def test_results_are_small_files(runs: KeyphraseExperiment) -> None:
    files = [*runs.folder.glob("cells/*"), *runs.folder.glob("predictions/*-seed-*")]
    assert len(files) == 2 * len(SMALL.runs()) + 1  # the learning rate
    assert max(path.stat().st_size for path in files) < 5000


def test_results_without_weights_are_enough_for_the_tables(
    runs: KeyphraseExperiment, tmp_path: Path
) -> None:
    for path in (*runs.folder.glob("cells/*"), *runs.folder.glob("predictions/*")):
        place = tmp_path / path.relative_to(runs.folder)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
    there = Experiment(KeyphraseStudy(corpus(), SMALL), tmp_path, should_stop=pytest.fail)
    one, other = (
        keyphrase_score_table(score_keyphrase_arms(each(), each.study.corpus), "all")
        for each in (there, runs)
    )
    assert one == other


def test_results_without_weights_are_continued_and_the_rate_is_not_chosen_again(
    runs: KeyphraseExperiment, tmp_path: Path
) -> None:
    for part in ("cells", "predictions"):
        shutil.copytree(runs.folder / part, tmp_path / part)
    design = replace(SMALL, arms=SMALL.arms[:2], seeds=(1, 2, 3))
    told: list[str] = []
    more = Experiment(KeyphraseStudy(corpus(), design), tmp_path, log=told.append)
    assert [result.run.seed for result in more()] == [1, 1, 2, 3]
    trained = sorted(path.name for path in (tmp_path / "models").iterdir())
    assert trained == ["MLE-seed-1", "RL-F1-seed-3"]
    assert any(line.startswith("RL-F1-seed-3: step 2 of ") for line in told)


def test_stopped_anywhere_the_experiment_comes_out_the_same(
    runs: KeyphraseExperiment, tmp_path: Path
) -> None:
    told: list[str] = []
    small = KeyphraseDesign(SMALL.arms[:2], (1,), SMALL.settings, SMALL.stage)
    for _ in range(40):
        steps = iter(range(5))
        parts = Experiment(
            KeyphraseStudy(corpus(), small),
            tmp_path,
            lambda steps=steps: next(steps, 9) >= 4,  # type: ignore[misc]  # no argument is given
            told.append,
        )
        if len(parts()) == 2:
            break
    wanted = {r.run: r.outputs for r in runs.results()}
    assert all(r.outputs == wanted[r.run] for r in parts.results())
    assert any("paused after step" in line for line in told)


def test_tables_have_the_papers_shape(runs: KeyphraseExperiment) -> None:
    found = score_keyphrase_arms(runs.results(), runs.study.corpus, shared_start=True)
    header, *lines = keyphrase_score_table(found, "present")
    assert header[2:5] == ["A F1@M", "A F1@5", "A FG"]
    assert [line[0] for line in lines] == ["MLE", "RL(F1)", "RL(FG)", "2RL(FG)"]
    assert {line[1] for line in lines} == {"2"}
    assert ablation_table(found, "B")[0][-4:] == ["tF", "tP", "tR", "present phrases"]


def test_an_arm_does_not_differ_from_itself(runs: KeyphraseExperiment) -> None:
    first = score_keyphrase_arms(runs.results(), runs.study.corpus)[0].scores
    seen = first.minus(first, "present FG")
    assert (seen.value, seen.low, seen.high) == (0.0, 0.0, 0.0)


def test_the_report_says_what_was_found_and_what_is_missing(runs: KeyphraseExperiment) -> None:
    more = KeyphraseDesign(SMALL.arms, (1, 2, 3), SMALL.settings, SMALL.stage)
    report = keyphrase_report(Experiment(KeyphraseStudy(corpus(), more), runs.folder))
    assert report.findings[:2] == [
        "7 runs are done, 3 are not; run the study again to continue",
        "not done: RL(F1), seed 3",
    ]
    claim = "rewarding F1 raises F1 beyond likelihood (F1@M: RL(F1) minus MLE), A: "
    assert any(line.startswith(claim) for line in report.findings)
    assert {"fg-a", "words-b", "looks-MLE", "looks-2RL-FG"} <= set(report.figures)


def test_an_arm_is_degenerate_if_its_absent_phrases_repeat_words_more_than_people_do() -> None:
    run = KeyphraseRun(1, KEYPHRASE_ARMS["RL(FB)"])
    outputs = {"A": [["x y x", "old old"]] * 12, "B": [["old old", "x y"]] * 9}
    found = score_keyphrase_arms([RunResult(run, [], {}, 1, outputs)], corpus())
    told = "words of absent phrases repeat an earlier one in the worst seed"
    limit = "twice people's share is 0.0 %: degenerate; without phrases in which a word follows"
    assert list(describe_repetition(found)) == [
        f"RL(FB), A: 24 of 60 {told}, 40.0 [40.0, 40.0] %; {limit} itself: degenerate",
        f"RL(FB), B: 9 of 36 {told}, 25.0 [25.0, 25.0] %; {limit} itself: not degenerate",
    ]


def test_one_repetition_among_few_words_is_not_degenerate() -> None:
    run = KeyphraseRun(1, KEYPHRASE_ARMS["RL(FB)"])
    outputs = {"A": [["x y x"], *[["x y z"]] * 11], "B": [["x y"]] * 9}
    found = score_keyphrase_arms([RunResult(run, [], {}, 1, outputs)], corpus())
    one = next(each for each in measure_repetition(found) if each.arm == "RL(FB)")
    assert (one.repeated, one.words, one.limit) == (1, 36, 0.0)
    assert one.share.low == 0.0 < one.share.high
    assert not one.degenerate


def test_words_are_repeated_in_absent_phrases_only_if_these_are_absent() -> None:
    text = Document("nets of nets are fast .", ())
    phrases = ["nets of nets", "fast net fast", "old old"]
    assert count_phrases([phrases], 1, 2).repeated == pytest.approx(3 / 8)
    assert count_repeated_words([phrases, []], [text, text]).tolist() == [[2, 5, 1, 3], [0] * 4]


def test_an_arm_that_wrote_nothing_has_no_shares() -> None:
    assert {share for _, share in histogram_shares(np.array([]))} == {0.0}


def test_a_text_to_judge_by_is_not_learnt_from_however_it_is_set() -> None:
    text = "We study deep nets, which parse trees fast and well in many languages of the world."
    near = Document(text.lower().replace(",", " ,"), ())
    other = Document("We study deep nets, which is a thing that many people in the world do.", ())
    assert list(remove_overlapping([near, other], [Document(text, ())])) == [other]


@pytest.mark.slow
def test_the_public_corpus_has_no_text_of_a_test_among_those_to_learn_from(data: Path) -> None:
    found = load_keyphrase_corpus()
    tests = [d for each in found.tests.values() for d in each]
    assert {name: len(each) for name, each in found.tests.items()} == {
        "Inspec": 500,
        "Krapivin": 400,
        "KP20k": 1000,
    }
    assert len(found.train) > 4500
    assert list(remove_overlapping(tests[:900:100], found.train)) == tests[:900:100]


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(800)
def test_in_two_minutes_the_loss_falls_and_the_reward_rises(data: Path, tmp_path: Path) -> None:
    """The experiment on real documents, FB's scorer included, cut down to minutes."""
    whole = load_keyphrase_corpus()
    tests = {name: each[:20] for name, each in whole.tests.items()}
    design = KeyphraseDesign(
        arms=("RL(FG)", "2RL(FB)"),
        seeds=(1,),
        settings=CatSeqSettings(
            words=2000,
            longest=150,
            shape=CatSeqShape(embedding=48, hidden=48, attention=48),
            likelihood=CatSeqTrainingSettings(epochs=3, batch=10, rate=3e-3, look_every=40),
        ),
        stage=Stage(
            training=CatSeqTrainingSettings(
                epochs=1, batch=20, rate=1e-3, look_every=6, halve=False
            )
        ),
        rates=(1e-3,),
        scorer={"frozen": 5, "settings": FitSettings(batch=32)},
    )
    few = KeyphraseCorpus(whole.train[-800:], whole.valid[:40], tests)
    start = time.monotonic()
    with training_threads(1):
        found = {
            each.run.rewards: each for each in Experiment(KeyphraseStudy(few, design), tmp_path)()
        }
    likelihood = found[()]
    assert likelihood.curves["value"][-1] < 0.75 * likelihood.curves["value"][0]
    rl = found[KEYPHRASE_ARMS["RL(FG)"]]
    assert max(value for _, value in rl.evaluations) > rl.evaluations[0][1]
    assert time.monotonic() - start < 600


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arms": ("RL(X)",)}, "has no arm 'RL\\(X\\)'"),
        ({"seeds": ()}, "needs at least one arm and one seed"),
        ({"seeds": (1, -1)}, "seed must be at least 0, got -1"),
        ({"rates": ()}, "needs at least one learning rate"),
    ],
)
def test_a_design_that_cannot_be_run_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        KeyphraseDesign(**changed)
