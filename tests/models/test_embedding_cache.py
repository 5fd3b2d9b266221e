"""Scores with a cache: equal on a hit and on a miss, and close to those without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.models import backbone

CANDIDATES = [
    "The committee met on Tuesday to discuss the budget.",
    "Rain fell all night and the river rose.",
    "",
    "She sold the old house by the sea",
]
REFERENCES = [
    ["On Tuesday the committee discussed the budget.", "The budget was discussed."],
    ["It rained all night, and the river rose.", "The river rose after a night of rain."],
    ["Nothing to say.", "Nothing."],
    ["The old house by the sea was sold by her.", "She sold her house."],
]
METRICS = ["bertscore", "f_disc", "f_cont", "bertscore(layer=2)"]
pytestmark = pytest.mark.model


def scored(**run: Any) -> dict[str, em.Scores]:
    return em.score(CANDIDATES, REFERENCES, METRICS, **run)


def values(scores: dict[str, em.Scores]) -> list[tuple[em.Score, ...]]:
    return [s.segments for s in scores.values()]


def test_the_exact_form_changes_nothing(tmp_path: Path) -> None:
    cache = em.Cache(str(tmp_path), exact=True)
    plain, cold, warm = scored(), scored(cache=cache), scored(cache=cache)
    assert values(plain) == values(cold) == values(warm)
    assert [s.signature for s in plain.values()] == [s.signature for s in warm.values()]


def test_the_compact_form_gives_the_same_on_a_hit_and_on_a_miss(tmp_path: Path) -> None:
    cold, warm = scored(cache=str(tmp_path)), scored(cache=str(tmp_path))
    assert values(cold) == values(warm)
    for plain, compact in zip(scored().values(), warm.values(), strict=True):
        for a, b in zip(plain.segments, compact.segments, strict=True):
            assert a.value == pytest.approx(b.value, abs=1e-5)
            assert a.flags == b.flags


def test_the_compact_form_is_named_in_the_signature(tmp_path: Path) -> None:
    signature = scored(cache=str(tmp_path))["bertscore"].signature
    assert signature.endswith(" · vectors compact")
    assert em.build(signature.split(" · ")[0])(()).segments == ()


def test_a_known_text_is_not_encoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored(cache=str(tmp_path))
    encoded: list[str] = []
    plain = backbone.OpenBackbone.encode

    def spy(self: backbone.OpenBackbone, texts: list[str], *rest: object) -> object:
        encoded.extend(texts)
        return plain(self, texts, *rest)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(backbone.OpenBackbone, "encode", spy)
    em.score([*CANDIDATES, "A new one."], [*REFERENCES, ["Nothing."]], METRICS, cache=str(tmp_path))
    assert encoded == ["A new one."]
    encoded.clear()
    em.score(CANDIDATES[:1], REFERENCES[:1], "f_disc(layer=3)", cache=str(tmp_path))
    assert len(encoded) == 3  # another layer is another entry


def test_a_warm_run_does_not_load_torch(tmp_path: Path) -> None:
    program = (
        "import sys, evenmatch as em\n"
        f"em.score(['a cat'], ['the cat'], ['bertscore', 'f_cont'], cache={str(tmp_path)!r})\n"
        "print('torch' in sys.modules)"
    )
    torch_loaded = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert torch_loaded == ["True", "False"]


def test_windows_and_truncation_are_different_entries(tmp_path: Path) -> None:
    long = " ".join(["the cat sat on the mat and"] * 120)
    run: dict[str, Any] = {"cache": str(tmp_path)}
    cut = em.score([long], [long[:500]], "f_disc", **run).segments[0]
    whole = em.score([long], [long[:500]], "f_disc(long='windows')", **run).segments[0]
    again = em.score([long], [long[:500]], "f_disc", **run).segments[0]
    assert "truncated" in cut.flags
    assert "truncated" not in whole.flags
    assert cut == again
    assert cut.value != whole.value


@pytest.mark.parametrize("bad", [3, "", em.Cache(max_bytes=0)])
def test_a_cache_that_cannot_be_meant_is_refused(bad: object) -> None:
    with pytest.raises(em.InputError, match="cache takes True, 'exact', a folder or a Cache"):
        em.score(["a"], ["a"], cache=bad)
