from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from evenmatch.errors import DataError
from evenmatch.files import models_dir
from evenmatch.metrics.keyphrases.phrase_similarity import DEFAULT_SCORER, default_scorer_folder
from evenmatch.models import checkpoints
from evenmatch.packages import PACKAGES
from evenmatch.registry import parts
from tests.support.browser import browser as browser
from tests.support.browser import visit as visit
from tests.support.model_families import folder_of as folder_of

# Settled before anything of evenmatch or transformers is asked where things lie: no test writes to
# a user's cache, and none reaches for the network.
os.environ["HF_HUB_OFFLINE"] = "1"
# Small models gain nothing from threads, and on a busy machine threads that wait cost tenfold.
os.environ["OMP_NUM_THREADS"] = "1"
_CACHE = tempfile.TemporaryDirectory(prefix="evenmatch-tests-")
os.environ["EVENMATCH_CACHE"] = _CACHE.name
os.environ["HF_MODULES_CACHE"] = f"{_CACHE.name}/hf-modules"
os.environ["HF_METRICS_CACHE"] = f"{_CACHE.name}/hf-metrics"

# The same examples every time: a test that fails does so for everybody.
settings.register_profile(
    "evenmatch",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenmatch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`model` skips a test where MiniLM is not here; `model("wordnet")` where that is not."""
    for item in items:
        for mark in item.iter_markers("model"):
            for reason in filter(None, map(_why_not, mark.args or ("minilm",))):
                item.add_marker(pytest.mark.skip(reason=reason))


@cache
def _why_not(name: str) -> str:
    if name == "minilm" and not (find_spec("torch") and find_spec("transformers")):
        return "torch and transformers are not installed"
    if name == DEFAULT_SCORER:
        there = (default_scorer_folder() / "config.json").is_file()
        return "" if there else "no phrase scorer is here; train one: evenmatch fit --keyphrases"
    if "/" in name:
        return _why_not_on_the_hub(name)
    if not PACKAGES[name].is_present(models_dir() / name):
        return f"{name} is not here; fetch it with: evenmatch models get {name}"
    return ""


def _why_not_on_the_hub(name: str) -> str:
    try:
        checkpoints.find_checkpoint(name)
    except DataError:
        return f"{name} is not on this machine"
    return ""


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the public data sets."""
    given = os.environ.get("EVENMATCH_DATA", "")
    if not given or not Path(given).is_dir():
        pytest.skip("EVENMATCH_DATA names no folder of data sets")
    return Path(given)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, empty at first."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENMATCH_CACHE", str(folder))
    return folder


@pytest.fixture
def registry() -> Iterator[None]:
    """The registry as it is, and as it was again afterwards."""
    parts.names()  # built-ins enter when first asked for, and only once
    before = dict(parts._entries)
    yield
    parts._entries.clear()
    parts._entries.update(before)
