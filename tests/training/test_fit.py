from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import evenmatch as em
from evenmatch.data.cards import MetricCard
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.errors import InputError
from evenmatch.metrics.fitted import (
    Projection,
    load_bi_encoder_head,
    pair_features,
    pair_features_torch,
)
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.scoring.metric import read_metric
from evenmatch.training.loop import FitSettings, length_grouped_batches
from evenmatch.training.metrics.bi_encoder import load_partly_frozen
from evenmatch.training.metrics.examples import (
    make_training_examples,
    rated_pairs,
    standardise_ratings,
)

SETTINGS = FitSettings(epochs=8, batch=8, rate=1e-3, head_rate=1e-2)
CANDIDATES = ["a cat sat on the mat", "rain is expected", ""]
MATCHES = ["a cat sat on a mat", "the fox jumps", "rain"]


@pytest.fixture(scope="module")
def made(tiny: str, rated: list[RatedSet], tmp_path_factory: pytest.TempPathFactory) -> MetricCard:
    out = tmp_path_factory.mktemp("made") / "metric"
    return em.fit(rated, out, test=rated, model=tiny, frozen=1, settings=SETTINGS)


def test_a_fitted_metric_learns_what_it_is_shown(
    made: MetricCard, tiny: str, rated: list[RatedSet]
) -> None:
    pairs, ratings = rated_pairs(rated)
    given = [p.candidate for p in pairs], [p.references for p in pairs]
    before = em.score(*given, f"bertscore(model={tiny!r}, layer=4)").segments
    start = np.corrcoef([score.value for score in before], ratings)[0, 1]
    assert made.document["mean"]["value"] > max(0.9, start)


def test_a_fitted_metric_is_on_the_scale_of_its_ratings(made: MetricCard) -> None:
    reference = "the quick brown fox jumps over the lazy dog"
    others = "the dog looked at the lazy cat on the"
    found = em.score([reference, others], [reference] * 2, made.metric)
    assert found.segments[0].value > 70
    assert found.segments[1].value < 50


def test_a_fitted_metric_keeps_the_promises_of_metrics(made: MetricCard) -> None:
    em.check_metric(em.build(f"fitted(model={made.metric!r})"))


def test_the_folder_named_by_path_is_the_metric(made: MetricCard) -> None:
    by_path = em.score(CANDIDATES, MATCHES, made.metric)
    by_spec = em.score(CANDIDATES, MATCHES, f"fitted(model={made.metric!r})")
    assert by_path == by_spec
    assert str(made.folder) not in by_path.signature


@pytest.mark.parametrize("projected", [False, True])
def test_what_training_sees_is_what_scoring_sees(projected: bool) -> None:
    import torch

    draw = np.random.default_rng(0)
    sides = [draw.normal(size=(2, n, 16)).astype(np.float32) for n in (3, 12)]
    there = [np.array([[True] * n, [True] * (n - 1) + [False]]) for n in (3, 12)]
    shapes = [(4, 16), (4,), (16, 4), (16,), (16,)]
    drawn = [[draw.normal(size=s).astype(np.float32) for s in shapes] for _ in range(2)]
    arrays = [Projection(*each) for each in drawn if projected]
    tensors = [Projection(*map(torch.from_numpy, each)) for each in drawn if projected]
    texts = [{4: torch.from_numpy(s), 2: torch.from_numpy(-s)} for s in sides]
    masks = [torch.from_numpy(t) for t in there]
    found = pair_features_torch(texts[0], masks[0], texts[1], masks[1], (2, 4), tensors).numpy()
    assert found.shape == (2, 2 * 16 + 2 * (8 if projected else 3))
    for row in range(2):
        x, y = ({4: s[row][t[row]], 2: -s[row][t[row]]} for s, t in zip(sides, there, strict=True))
        np.testing.assert_allclose(found[row], pair_features(x, y, (2, 4), arrays), atol=1e-4)


def test_the_same_seed_trains_the_same_metric(
    made: MetricCard, tiny: str, rated: list[RatedSet], tmp_path: Path
) -> None:
    again = em.fit(rated, tmp_path / "again", test=rated, model=tiny, frozen=1, settings=SETTINGS)
    assert again.signature == made.signature


def test_frozen_blocks_stay_as_they_are(made: MetricCard, tiny: str) -> None:
    from safetensors.numpy import load_file

    before, after = (
        load_file(Path(folder) / "model.safetensors") for folder in (tiny, made.folder)
    )
    changed = {name for name in after if not np.array_equal(before[name], after[name])}
    assert changed
    assert all(name.startswith(tuple(f"encoder.layer.{n}." for n in (1, 2, 3))) for name in changed)


def test_the_card_says_what_from_and_how_good(made: MetricCard) -> None:
    card = (made.folder / "README.md").read_text()
    assert "trained on: rated (" in card
    assert made.signature in card
    assert f"| {made.document['mean']['value']:.3f} |" in card


def test_without_other_ratings_some_segments_are_set_apart(
    tiny: str, rated: list[RatedSet], tmp_path: Path
) -> None:
    found = em.fit(
        rated, tmp_path / "m", model=tiny, frozen=3, settings=FitSettings(batch=32), hold_out=0.3
    )
    rated_outputs = sum(len(each.cells(rated=True)[0]) for each in rated)
    judged = found.document["mean"]["n"]
    assert 0 < judged < rated_outputs
    assert f"({rated_outputs - judged} rated outputs)" in found.facts["trained on"]


def test_an_existing_folder_is_not_written_over(made: MetricCard, rated: list[RatedSet]) -> None:
    with pytest.raises(InputError, match="already exists; name a new folder"):
        em.fit(rated, made.folder)


@pytest.mark.parametrize("frozen", [-1, 4])
def test_as_many_blocks_cannot_be_frozen(tiny: str, frozen: int) -> None:
    with pytest.raises(InputError, match="has 4 blocks; at least one must be trained"):
        load_partly_frozen(find_checkpoint(tiny), frozen, "cpu")


def test_a_folder_without_a_head_is_refused(tiny: str) -> None:
    with pytest.raises(em.DataError, match=r"holds no head\.safetensors; give a folder"):
        load_bi_encoder_head(find_checkpoint(tiny))


def test_a_damaged_head_is_refused(tiny: str, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(tiny, tmp_path / "m")
    (tmp_path / "m" / "head.safetensors").write_bytes(b"nothing")
    with pytest.raises(em.DataError, match=r"cannot read .*head.safetensors"):
        load_bi_encoder_head(find_checkpoint(str(tmp_path / "m")))


def test_too_few_ratings_are_refused() -> None:
    with pytest.raises(InputError, match="1 rated pairs of texts are too few to train on"):
        make_training_examples([em.Pair("a", ("b",)), em.Pair("", ("b",))], [1.0, 2.0])


def test_ratings_all_alike_are_refused() -> None:
    with pytest.raises(InputError, match="all 9 pairs have the same rating, 3"):
        make_training_examples([em.Pair("a", ("b",))] * 9, [3.0] * 9)


def test_pairs_that_belong_together_are_in_one_batch() -> None:
    owner = np.random.default_rng(0).integers(0, 15, 60)
    draw = np.random.default_rng(1)
    batches = list(length_grouped_batches([3, 1, 2] * 20, 7, draw, together=owner))
    assert np.bincount(np.concatenate(batches)).tolist() == [1] * 60
    assert sum(len(set(owner[batch])) for batch in batches) == len(set(owner))
    assert max(map(len, batches)) < 2 * 7 + np.bincount(owner).max()


def test_every_pair_is_seen_once_an_epoch() -> None:
    seen_pairs = np.concatenate(
        list(length_grouped_batches([3, 1, 2] * 20, 7, np.random.default_rng(0)))
    )
    assert np.bincount(seen_pairs).tolist() == [1] * 60


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"epochs": 0}, "epochs must be at least 1"), ({"rate": 0.0}, "rate must be above 0")],
)
def test_invalid_settings_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        FitSettings(**settings)  # type: ignore[arg-type]  # one of either type


def test_ratings_cannot_all_be_set_apart(rated: list[RatedSet], tiny: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"a share of 1\.0 of the segments \(6\) cannot be held out"
    ):
        em.fit(rated, tmp_path / "m", model=tiny, hold_out=1.0)


PARTS = ("chrf", "reference_length")


@pytest.fixture(scope="module")
def adapted(
    tiny: str, rated: list[RatedSet], tmp_path_factory: pytest.TempPathFactory
) -> MetricCard:
    out = tmp_path_factory.mktemp("adapted") / "metric"
    settings = FitSettings(epochs=4, batch=8, rate=1e-2, head_rate=1e-2)
    return em.fit(
        rated,
        out,
        test=rated,
        kind="adapter",
        model=tiny,
        frozen=1,
        settings=settings,
        parts=PARTS,
    )


def test_an_adapter_learns_what_it_is_shown(adapted: MetricCard) -> None:
    assert adapted.document["mean"]["value"] > 0.85


def test_an_adapter_is_a_blend_of_a_fitted_metric_and_its_parts(
    adapted: MetricCard, tiny: str, rated: list[RatedSet]
) -> None:
    blend = read_metric(str(adapted.folder))
    pairs, _ = rated_pairs(rated)
    given = [p.candidate for p in pairs[:5]], [p.references for p in pairs[:5]]
    parts = [em.score(*given, part).values for part in blend.parts]
    found = em.score(*given, adapted.metric)
    np.testing.assert_allclose(found.values, np.dot(blend.weights, parts), atol=1e-5)
    assert str(adapted.folder) not in found.signature
    # the file has bottlenecks and a head, and no weights of the encoder
    assert {path.name for path in adapted.folder.iterdir()} == {
        "README.md",
        "adapter.safetensors",
        "metric.json",
    }


def test_an_adapter_has_no_bottleneck_in_frozen_blocks(adapted: MetricCard) -> None:
    from safetensors.numpy import load_file

    weights = load_file(adapted.folder / "adapter.safetensors")
    assert min(int(name.split(".")[0]) for name in weights) == 1
    assert all(weights[name].any() for name in weights)


def test_training_can_continue_on_other_ratings(
    adapted: MetricCard, tiny: str, rated: list[RatedSet], tmp_path: Path
) -> None:
    """With a rate of almost 0 the result is the start, on the scale of standardised ratings."""
    settings = FitSettings(batch=8, rate=1e-12, head_rate=1e-12)
    how = {"kind": "adapter", "model": tiny, "frozen": 1, "settings": settings, "test": rated}
    again = em.fit(rated, tmp_path / "again", start=adapted.folder, most=20, **how)  # type: ignore[arg-type]  # options
    before, after = (em.score(CANDIDATES, MATCHES, m.metric).values for m in (adapted, again))
    np.testing.assert_allclose(after, before, atol=1e-3)
    assert "(20 rated outputs)" in again.facts["trained on"]
    other = em.fit(rated, tmp_path / "other", kind="towers", model=tiny, test=rated, frozen=3)
    with pytest.raises(InputError, match="training cannot continue from"):
        em.fit(rated, tmp_path / "no", start=other.folder, **how)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="are settings of kind='adapter'"):
        em.fit(rated, tmp_path / "no", model=tiny, most=3)
    with pytest.raises(InputError, match="most must be at least 0, got -3"):
        em.fit(rated, tmp_path / "no", most=-3, **how)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def projected(
    tiny: str, rated: list[RatedSet], tmp_path_factory: pytest.TempPathFactory
) -> MetricCard:
    out = tmp_path_factory.mktemp("projected") / "metric"
    settings = FitSettings(epochs=6, batch=8, rate=1e-2, head_rate=1e-2)
    how = {"kind": "projection", "model": tiny, "settings": settings, "test": rated}
    return em.fit(rated, out, ranking=1.0, **how)  # type: ignore[arg-type]  # options


def test_a_projection_learns_what_it_is_shown(projected: MetricCard) -> None:
    assert projected.document["mean"]["value"] > 0.85


def test_a_projection_keeps_the_promises_of_metrics(projected: MetricCard) -> None:
    em.check_metric(read_metric(str(projected.folder)))


def test_a_projection_is_one_small_file(projected: MetricCard) -> None:
    from safetensors.numpy import load_file

    weights = load_file(projected.folder / "adapter.safetensors")
    assert {name.split(".")[1] for name in weights} == {"1", "3"}
    assert {weight.dtype for weight in weights.values()} == {np.dtype(np.float16)}
    assert all(weights[f"projection.{n}.importance"].any() for n in (1, 3))


def test_ranking_is_a_setting_of_projections(rated: list[RatedSet], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ranking is a setting of kind='projection'"):
        em.fit(rated, tmp_path / "m", kind="adapter", ranking=1.0)
    with pytest.raises(InputError, match="parts and start are settings of kind='adapter'"):
        em.fit(rated, tmp_path / "m", kind="projection", parts=["chrf"])


def test_error_counts_can_become_roots() -> None:
    (found,) = standardise_ratings([rated_set("a", np.array([[0.0, -1, -4, -25]]))], roots=True)
    roots = np.array([0.0, -1, -2, -5])
    np.testing.assert_allclose(found.ratings[0], (roots + 2) / roots.std())
    (other,) = standardise_ratings([rated_set("a", np.array([[1.0, -1]]))], roots=True)
    assert other.ratings.tolist() == [[1, -1]]


def test_ratings_are_standardised_and_segments_centred() -> None:
    ratings = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 9.0], [np.nan, 10.0]])
    one = rated_set("a", ratings)
    (plain,) = standardise_ratings([one])
    known = ratings[~np.isnan(ratings)]
    np.testing.assert_allclose(plain.ratings, (ratings - known.mean()) / known.std())
    # only the second segment has four outputs: its mean, 7, moves to that of all, 34 / 7
    (centred,) = standardise_ratings([one], segment_share=0.0)
    moved = ratings - 34 / 7
    moved[:, 1] = ratings[:, 1] - 7
    np.testing.assert_allclose(centred.ratings, moved / np.nanstd(moved))
    with pytest.raises(InputError, match="the share of segments must be from 0 to 1, got 2"):
        standardise_ratings([one], segment_share=2.0)


def test_each_data_set_has_deviation_1_whatever_its_scale() -> None:
    small, large = rated_set("a", np.array([[1.0, 2.0]])), rated_set("b", np.array([[0.0, 50.0]]))
    found = standardise_ratings([small, large])
    assert [each.ratings.tolist() for each in found] == [[[-1, 1]], [[-1, 1]]]


def rated_set(name: str, ratings: NDArray[np.float64]) -> RatedSet:
    systems, segments = ratings.shape
    return RatedSet(
        name,
        "",
        tuple(f"s{i}" for i in range(systems)),
        tuple(str(i) for i in range(segments)),
        (("text",) * segments,) * systems,
        (("text",),) * segments,
        (None,) * segments,
        ratings,
        np.full(systems, np.nan),
    )
