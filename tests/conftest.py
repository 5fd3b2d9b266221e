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

# Set before evenmatch or transformers read them: no test writes to the user's cache or uses the
# network.
os.environ["HF_HUB_OFFLINE"] = "1"
# Small models gain nothing from threads; on a busy machine, waiting threads take ten times longer.
os.environ["OMP_NUM_THREADS"] = "1"
_CACHE = tempfile.TemporaryDirectory(prefix="evenmatch-tests-")
os.environ["EVENMATCH_CACHE"] = _CACHE.name
os.environ["HF_MODULES_CACHE"] = f"{_CACHE.name}/hf-modules"
os.environ["HF_METRICS_CACHE"] = f"{_CACHE.name}/hf-metrics"

# The same examples in every run, so that a failure can be reproduced.
settings.register_profile(
    "evenmatch",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenmatch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `model` without MiniLM, and `model("wordnet")` without WordNet."""
    for item in items:
        for mark in item.iter_markers("model"):
            for reason in filter(None, map(_skip_reason, mark.args or ("minilm",))):
                item.add_marker(pytest.mark.skip(reason=reason))


@cache
def _skip_reason(name: str) -> str:
    if name == "minilm" and not (find_spec("torch") and find_spec("transformers")):
        return "torch and transformers are not installed"
    if name == DEFAULT_SCORER:
        present = (default_scorer_folder() / "config.json").is_file()
        return "" if present else "there is no phrase scorer; train one: evenmatch fit --keyphrases"
    if "/" in name:
        return _skip_reason_on_hub(name)
    if not PACKAGES[name].is_present(models_dir() / name):
        return f"{name} is not on this machine; fetch it with: evenmatch models get {name}"
    return ""


def _skip_reason_on_hub(name: str) -> str:
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
        pytest.skip("EVENMATCH_DATA is not set to a folder of data sets")
    return Path(given)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for one test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENMATCH_CACHE", str(folder))
    return folder


@pytest.fixture
def registry() -> Iterator[None]:
    """Restore the registry after the test."""
    parts.names()  # load the built-in parts, which register only once
    before = dict(parts._entries)
    yield
    parts._entries.clear()
    parts._entries.update(before)
