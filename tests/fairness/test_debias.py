from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair, read_fair_pairs
from evenmatch.data.pairs import TRAINING_SPLITS, read_sentence_pairs
from evenmatch.errors import DataError, InputError
from evenmatch.fairness.adapter_training import DebiasSettings, train_adapter
from evenmatch.fairness.counterfactuals import Counterfactual
from evenmatch.fairness.debias import debias, exclude_audited
from evenmatch.fairness.differentiable import make_differentiable
from evenmatch.fairness.training_data import Contrast, DebiasData, build_debias_data
from evenmatch.models.adapters import ADAPTER_WEIGHTS_FILE, new_adapter, save_adapter
from evenmatch.scoring.metric import as_metric
from evenmatch.training import checkpoints
from evenmatch.training.checkpoints import CHECKPOINT_FILE
from evenmatch.types import Pair, Run

PAIRS = [
    Pair("He sat on the mat.", ("She sat on the mat.",)),
    Pair("The man looked at his dog.", ("A man looked at the dog.",)),
    Pair("Rain is expected.", ("It will rain tomorrow.",)),
]
TEXTS = [
    ("he sat on the mat", "the cat sat on a mat"),
    ("the dog", "a quick dog"),
    ("rain", "a box"),
]
QUICK = DebiasSettings(steps=3, batch=2, factor=4)
SETS = [
    FairnessSet(
        "small", {"gender": [make_fairness_pair("he ran", "it ran", "she ran", "it ran")] * 2}
    ),
]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    from evenmatch.models.loading import quiet_transformers
    from tests.support.model_families import FAMILIES, save

    family = next(each for each in FAMILIES if each.name == "bert")
    with quiet_transformers():
        return str(save(family, tmp_path_factory.mktemp("bert")))


@pytest.mark.parametrize("name", ["bertscore", "f_disc", "f_cont"])
def test_training_scores_are_the_metric_s_own(name: str, model: str) -> None:
    metric = as_metric(f"{name}(model='{model}', layer=2)")
    found = make_differentiable(metric, Run()).scores(TEXTS, None).tolist()
    wanted = [em.score([c], [r], metric).mean for c, r in TEXTS]
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", ["bertscore", "f_disc"])
def test_scores_with_an_adapter_for_the_last_block_are_the_metric_s_own(
    name: str, model: str, tmp_path: Path
) -> None:
    spec = f"{name}(model='{model}', layer=2"
    through = make_differentiable(as_metric(f"{spec})"), Run(), last_block=True)
    through.prepare([text for pair in TEXTS for text in pair])
    adapter = new_adapter(through.dim, through.blocks, first=through.first, factor=4, seed=1)
    for weight in adapter.parameters():
        weight.data.mul_(20).add_(0.1)
    save_adapter(adapter, tmp_path, {})
    assert adapter.blocks == [1]
    for given, metric in ((None, f"{spec})"), (adapter, f"{spec}, adapter='{tmp_path}')")):
        found = through.scores(TEXTS, given).tolist()
        wanted = [em.score([c], [r], metric).mean for c, r in TEXTS]
        assert found == pytest.approx(wanted, abs=1e-5)


def test_only_examples_that_were_drawn_are_trained_on(model: str) -> None:
    metric = as_metric(f"bertscore(model='{model}', layer=1)")
    through = make_differentiable(metric, Run(), last_block=True)
    seen: set[str] = set()

    def prepare(texts: Iterable[str]) -> None:
        seen.update(texts)
        through.prepare(texts)

    counted = dataclasses.replace(through, prepare=prepare)
    settings = dataclasses.replace(QUICK, last_block=True, examples=36)
    train_adapter(counted, build_debias_data(PAIRS), settings)
    assert 36 < len(seen) < 36 * 3 + 6 * 2 + 5 * 12


def test_an_adapter_is_trained_saved_judged_and_usable(model: str, tmp_path: Path) -> None:
    metric = f"bertscore(model='{model}', layer=2)"
    made = debias(metric, tmp_path / "mine", [PAIRS], settings=QUICK, judge_on=SETS)
    assert {row["what"] for row in made.document["rows"]} == {
        "bias",
        "raw difference",
        "stereotype",
        "share that prefers the stereotype",
        "group offset",
        "cost of a wrong group",
        "cost of a wrong gender, shown by a noun",
        "cost of a wrong gender, shown by a name",
    }
    assert "adapter" in em.score(["a cat"], ["the cat"], str(tmp_path / "mine")).signature
    assert (tmp_path / "mine" / "README.md").is_file()
    with pytest.raises(InputError, match="already exists; name a new folder for the adapter"):
        debias(metric, tmp_path / "mine", [PAIRS], settings=QUICK, judge_on=SETS)


def test_training_lowers_what_it_is_to_lower(model: str) -> None:
    data = build_debias_data(PAIRS)
    through = make_differentiable(as_metric(f"bertscore(model='{model}', layer=2)"), Run())
    settings = DebiasSettings(
        steps=40, batch=4, rate=0.02, factor=2, anchor_weight=0.0, contrast_weight=0.0
    )
    adapter = train_adapter(through, data, settings)

    def apart(one: Any) -> float:
        twins = data.counterfactuals[:40]
        pairs = [(c.original, c.neutral) for c in twins], [(c.swapped, c.neutral) for c in twins]
        a, b = (through.scores(side, one).tolist() for side in pairs)
        return float(np.abs(np.subtract(a, b)).mean())

    assert apart(adapter) < 0.8 * apart(None)


def _counterfactual(frame: str, *words: str) -> Counterfactual:
    return Counterfactual(*(frame.format(word) for word in (*words, "it")))


# Each term of the loss has texts of its own, so that no other term lowers what is measured.
TERMS = DebiasData(
    (_counterfactual("{} ran", "he", "she"),),
    (("the cat sat on a mat", "a dog looked at rain"),),
    (
        (
            Contrast("his box", "her box", "his quick box"),
            Contrast("her box", "his box", "her quick box"),
        ),
    ),
    (
        (
            _counterfactual("{} looked at the old dog", "a man", "a woman"),
            _counterfactual("{} is on a mat", "a man", "a woman"),
        ),
    ),
)


def _anchor_change(score: Callable[[str, str], float], plain: Callable[[str, str], float]) -> float:
    return abs(score(*TERMS.anchors[0]) - plain(*TERMS.anchors[0]))


def _penalty_change(
    score: Callable[[str, str], float], plain: Callable[[str, str], float]
) -> float:
    [both] = TERMS.contrasts

    def penalty(found: Callable[[str, str], float]) -> float:
        return sum(found(c.right, c.reference) - found(c.wrong, c.reference) for c in both) / 2

    return abs(penalty(score) - penalty(plain))


def _stereotype(score: Callable[[str, str], float], plain: Callable[[str, str], float]) -> float:
    one, other = (
        score(c.original, c.neutral) - score(c.swapped, c.neutral) for c in TERMS.stereotypes[0]
    )
    return abs(one - other)


@pytest.mark.parametrize(
    ("term", "lost"),
    [
        ("anchor_weight", _anchor_change),
        ("contrast_weight", _penalty_change),
        ("stereotype_weight", _stereotype),
    ],
)
def test_each_term_of_the_loss_does_what_it_is_for(
    term: str, lost: Callable[..., float], model: str
) -> None:
    """With a term, less than half is lost of what is lost without it."""
    through = make_differentiable(as_metric(f"bertscore(model='{model}', layer=2)"), Run())
    names = ("anchor_weight", "contrast_weight", "stereotype_weight")

    def measure(weight: float) -> float:
        weights: dict[str, Any] = dict.fromkeys(names, 0.0) | {term: weight}
        settings = DebiasSettings(steps=30, batch=4, rate=0.01, factor=2, **weights)
        adapter = train_adapter(through, TERMS, settings)

        def score(candidate: str, reference: str) -> float:
            return float(through.scores([(candidate, reference)], adapter)[0].item())

        def plain(candidate: str, reference: str) -> float:
            return float(through.scores([(candidate, reference)], None)[0].item())

        return lost(score, plain)

    without = measure(0.0)
    assert without > 2e-4
    assert measure(4.0) < 0.5 * without


def test_interrupted_training_goes_on_to_the_same_adapter(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SAVE_EVERY", 2)
    metric = f"bertscore(model='{model}', layer=1)"
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise Stop

    settings = DebiasSettings(steps=5, batch=2, factor=4)
    how: dict[str, Any] = {"settings": settings, "judge_on": SETS, "templates": False}
    debias(metric, whole, [PAIRS], **how)
    with pytest.raises(Stop):
        debias(metric, broken, [PAIRS], progress=stop, **how)
    assert not (broken / ADAPTER_WEIGHTS_FILE).exists()
    shutil.copytree(broken, tmp_path / "other")
    debias(metric, broken, [PAIRS], **how)
    for file in (path.name for path in whole.iterdir()):
        one, two = ((folder / file).read_bytes() for folder in (whole, broken))
        assert one == two, file
    for size in (0, 1, 100, 5000):
        cut = shutil.copytree(tmp_path / "other", tmp_path / f"cut {size}")
        state = cut / CHECKPOINT_FILE
        state.write_bytes(state.read_bytes()[:size])
        with pytest.raises(DataError, match=r"cannot read .* remove it to start again"):
            debias(metric, cut, [PAIRS], **how)
    assert not (broken / CHECKPOINT_FILE).exists()
    with pytest.raises(DataError, match="is from a run with other settings, texts or model"):
        debias(metric, tmp_path / "other", [PAIRS], **how | {"settings": QUICK})
    with pytest.raises(DataError, match="is from a run with other settings, texts or model"):
        debias(metric, tmp_path / "other", [PAIRS[:1]], **how)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("chrf", "only metrics with a transformer are differentiable"),
        (
            "align(vectors=hashed)",
            "an alignment metric without a transformer is not differentiable",
        ),
        ("align(units=words)", "needs units=pieces, scoring=prf and no padding"),
        (
            "bertscore(idf=True)",
            "may have neither an adapter nor idf weights counted from the call's references",
        ),
    ],
)
def test_a_metric_that_no_gradient_goes_through_is_refused(metric: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_differentiable(as_metric(metric), Run())


def test_the_last_block_alone_needs_a_layer_norm_behind_it(tmp_path: Path) -> None:
    from evenmatch.models.loading import quiet_transformers
    from tests.support.model_families import FAMILIES, save

    family = next(each for each in FAMILIES if each.name == "t5")
    with quiet_transformers():
        t5 = as_metric(f"bertscore(model='{save(family, tmp_path)}', layer=1)")
    with pytest.raises(InputError, match="needs a model whose blocks end in a layer norm"):
        make_differentiable(t5, Run(), last_block=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"examples": -1}, "examples must be at least 0, got -1"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"steps": 2.5}, "steps takes a whole number, got 2.5"),
        ({"contrast_weight": -1.0}, "contrast_weight must be at least 0, got -1"),
        ({"factor": 0}, "factor must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        DebiasSettings(**settings)


def test_a_pair_with_an_empty_side_is_not_learnt_from() -> None:
    odd = [Pair("", ("He ran.",)), Pair("She ran.", (" ",))]
    assert build_debias_data([*PAIRS, *odd], templates=False) == build_debias_data(
        PAIRS, templates=False
    )


def test_nothing_to_learn_from_is_refused(model: str) -> None:
    through = make_differentiable(as_metric(f"bertscore(model='{model}', layer=1)"), Run())
    data = build_debias_data([Pair("Rain.", ("It rains.",))], templates=False)
    with pytest.raises(
        InputError, match="no sentence mentions a group, or there are no sentence pairs"
    ):
        train_adapter(through, data, QUICK)


def audited() -> set[str]:
    """Every text of our own pairs and, where it is here, of Metric-Fairness."""
    sets = [read_fair_pairs()]
    with suppress(DataError):
        sets.append(read_fair_pairs("metric-fairness"))
    return {
        text
        for each in sets
        for pairs in each.pairs.values()
        for pair in pairs
        for side in pair.both
        for text in (side.candidate, *side.references)
    }


def test_what_is_audited_is_not_trained_on(data: Path) -> None:
    pairs = [pair for name in TRAINING_SPLITS for pair in read_sentence_pairs(name)[:80]]
    sets = [read_fair_pairs(), read_fair_pairs("metric-fairness")]
    seen = exclude_audited(build_debias_data(pairs), sets).texts
    assert len(seen) > 1000
    assert not seen & audited()


def test_an_audited_text_is_excluded_from_the_training_data() -> None:
    sets = [
        FairnessSet(
            "x", {"gender": [make_fairness_pair("He sat.", "It sat.", "She sat.", "It sat.")]}
        )
    ]
    found = exclude_audited(
        build_debias_data([Pair("He sat.", ("He ran.",))], templates=False), sets
    )
    assert "He sat." not in found.texts
    assert "He ran." in {c.original for c in found.counterfactuals}


def test_a_metric_that_cannot_be_debiased_is_refused_before_the_data_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("evenmatch.fairness.debias.build_debias_data")
    with pytest.raises(InputError, match="only metrics with a transformer are differentiable"):
        debias("bleu", tmp_path / "mine", [PAIRS], settings=QUICK)
