from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.integrations.bert_score import BERTScorer, plot_example, score
from evenmatch.models import checkpoints

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.model

CANDIDATES = [
    "The cat sat on the mat.",
    "28-year-old chef found dead in San Francisco mall",
    "the the the cat",
    "Prices rose 3.5 % in May, the fastest pace since 1981!",
    "She did not say who would be paying for the repairs",
    "A bird",
    "He said that that that was wrong.",
    "Nothing of the kind happened, according to the spokeswoman.",
]
REFERENCES = [
    "A cat was sitting on the mat.",
    "28-Year-Old Chef Found Dead at San Francisco Mall",
    "the cat sat",
    "In May prices went up by 3.5 per cent, faster than at any time since 1981.",
    "It was left open by her who is going to bear the cost of mending it",
    "Several thousand migratory birds crossed the bay before sunrise",
    "He called it wrong.",
    "The spokeswoman denied that any such thing had taken place.",
]
SEVERAL = [
    [a, b, "A cat."][: 1 + i % 3]
    for i, (a, b) in enumerate(zip(REFERENCES, CANDIDATES[1:] + CANDIDATES[:1], strict=True))
]


@pytest.fixture(scope="module")
def folder() -> str:
    return str(checkpoints.find_checkpoint("minilm").folder)


@pytest.fixture(scope="module")
def theirs() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bert_score
    return bert_score


@pytest.fixture
def quiet() -> Any:
    """The other package and the libraries it calls warn of much that is none of our business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(ours: Any, wanted: Any) -> None:
    for mine, other in zip(ours, wanted, strict=True):
        assert mine.dtype == other.dtype == torch.float32
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 4},
        {"num_layers": 6},
        {"num_layers": 0},
        {"num_layers": 4, "idf": True, "nthreads": 0},
        {"num_layers": 4, "all_layers": True},
    ],
    ids=str,
)
def test_scores_equal_those_of_the_package(
    theirs: Any, quiet: None, folder: str, options: dict[str, Any]
) -> None:
    wanted = theirs.score(CANDIDATES, REFERENCES, model_type=folder, batch_size=1, **options)
    same(score(CANDIDATES, REFERENCES, model_type=folder, batch_size=1, **options), wanted)


@pytest.mark.parametrize("idf", [False, True])
def test_several_references_give_the_best_of_each_number(
    theirs: Any, quiet: None, folder: str, idf: bool
) -> None:
    options: dict[str, Any] = {
        "model_type": folder,
        "num_layers": 4,
        "idf": idf,
        "nthreads": 0,
        "batch_size": 1,
    }
    same(score(CANDIDATES, SEVERAL, **options), theirs.score(CANDIDATES, SEVERAL, **options))


def test_every_layer_takes_the_best_reference(folder: str) -> None:
    p, _, _ = score(CANDIDATES, SEVERAL, folder, 4, all_layers=True)
    assert p.shape == (7, len(CANDIDATES))
    torch.testing.assert_close(p[4], score(CANDIDATES, SEVERAL, folder, 4)[0])


def test_a_scorer_equals_the_package_with_idf_from_other_sentences(
    theirs: Any, quiet: None, folder: str
) -> None:
    options: dict[str, Any] = {"model_type": folder, "num_layers": 4, "idf": True, "nthreads": 0}
    sentences = REFERENCES[2:] + CANDIDATES[:3]
    wanted = theirs.BERTScorer(idf_sents=sentences, **options)
    ours = BERTScorer(idf_sents=sentences, **options)
    same(
        ours.score(CANDIDATES, REFERENCES, batch_size=1),
        wanted.score(CANDIDATES, REFERENCES, batch_size=1),
    )
    by_list = BERTScorer(folder, 4, idf=sentences)
    same(by_list.score(CANDIDATES, REFERENCES), ours.score(CANDIDATES, REFERENCES))


def test_an_idf_dictionary_of_the_package_is_understood(
    theirs: Any, quiet: None, folder: str
) -> None:
    from bert_score.utils import get_idf_dict, get_tokenizer

    counted = get_idf_dict(REFERENCES + CANDIDATES, get_tokenizer(folder), nthreads=0)
    wanted = theirs.score(
        CANDIDATES, REFERENCES, model_type=folder, num_layers=4, idf=counted, batch_size=1
    )
    same(score(CANDIDATES, REFERENCES, folder, 4, idf=counted), wanted)


@pytest.mark.parametrize("all_layers", [False, True])
def test_rescaling_by_a_file_equals_the_package(
    theirs: Any, quiet: None, folder: str, tmp_path: Path, all_layers: bool
) -> None:
    options: dict[str, Any] = {
        "model_type": folder,
        "num_layers": 4,
        "batch_size": 1,
        "lang": "en",
        "rescale_with_baseline": True,
        "baseline_path": str(baseline(tmp_path)),
        "all_layers": all_layers,
    }
    same(score(CANDIDATES, REFERENCES, **options), theirs.score(CANDIDATES, REFERENCES, **options))


def baseline(folder: Path) -> Path:
    lines = [
        f"{layer},{0.3 + layer / 20},{0.31 + layer / 20},{0.29 + layer / 20}" for layer in range(7)
    ]
    path = folder / "baseline.tsv"
    path.write_text("\n".join(["LAYER,P,R,F", *lines]) + "\n")
    return path


def test_the_package_s_own_baselines_are_found(folder: str) -> None:
    from evenmatch.integrations.bert_score import find_baseline, read_baseline

    found = read_baseline(find_baseline(None, "en", "roberta-large"), [17])
    assert found[0] == pytest.approx([0.83149, 0.83154, 0.83122], abs=1e-4)


def test_a_score_does_not_depend_on_its_neighbours(folder: str) -> None:
    together = score(CANDIDATES, REFERENCES, folder, 4, batch_size=64)
    for row in range(len(CANDIDATES)):
        alone = score(CANDIDATES[row : row + 1], REFERENCES[row : row + 1], folder, 4, batch_size=1)
        for mine, all_rows in zip(alone, together, strict=True):
            assert abs(mine[0] - all_rows[row]) < 1e-6


def test_the_hash_says_what_was_done_and_names_no_path(folder: str, tmp_path: Path) -> None:
    found, text = score(CANDIDATES[:1], REFERENCES[:1], folder, 4, return_hash=True)
    assert len(found) == 3
    assert text.startswith("sha256:")
    assert f"_L4_no-idf_version=evenmatch-{em.__version__}(hug_trans=" in text
    assert folder not in text
    scorer = BERTScorer(
        "minilm", 3, idf=True, rescale_with_baseline=True, baseline_path=str(baseline(tmp_path))
    )
    assert scorer.hash.startswith("minilm_L3_idf_")
    assert scorer.hash.endswith("-custom-rescaled")
    assert repr(scorer) == f"BERTScorer(hash={scorer.hash}, batch_size=64, nthreads=4)"


def test_verbose_reports_on_standard_error(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    score(["a"], ["b"], folder, 4, verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("scored 1 candidates in")


def test_no_candidates_give_empty_tensors(folder: str) -> None:
    assert [len(t) for t in score([], [], folder, 4)] == [0, 0, 0]


def test_an_empty_text_scores_zero_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="of 3 pairs some are flagged: 1 empty_candidate"):
        _, _, f = score(["a cat", "", "a dog"], ["a cat", "a cat", "a dog"], "minilm")
    assert f.tolist() == pytest.approx([1, 0, 1], abs=1e-6)


def test_a_plot_is_drawn_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    aligned = plot_example("the cat sat", "a cat sat", "minilm", fname=str(path))
    assert path.read_text("utf-8").count(">cat<") == 2
    p, r, f = score(["the cat sat"], ["a cat sat"], "minilm")
    shown = (aligned.score.precision, aligned.score.recall, aligned.score.value)
    assert shown == pytest.approx((p.item(), r.item(), f.item()), abs=1e-6)


def test_a_rescaled_plot_shows_rescaled_numbers(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "rescale_with_baseline": True,
        "baseline_path": str(baseline(tmp_path)),
    }
    aligned = BERTScorer("minilm", 4, **options).plot_example("the cat sat", "a cat sat")
    _, _, f = score(["the cat sat"], ["a cat sat"], "minilm", 4, **options)
    assert aligned.score.value == pytest.approx(f.item(), abs=1e-6)
    raw = BERTScorer("minilm", 4).plot_example("the cat sat", "a cat sat")
    assert aligned.similarity[1, 1] == pytest.approx((raw.similarity[1, 1] - 0.49) / 0.51)
