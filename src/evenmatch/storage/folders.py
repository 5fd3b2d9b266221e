"""Where models and stored results lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def _beneath(variable: str, name: str) -> Path:
    given = os.environ.get(variable)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "evenmatch" / name


def models_dir() -> Path:
    """The embedded models' folder: EVENMATCH_MODELS, or one in the user's cache."""
    return _beneath("EVENMATCH_MODELS", "models")


def cache_dir() -> Path:
    """The folder of stored vectors and tables: EVENMATCH_CACHE, or one in the user's cache."""
    return _beneath("EVENMATCH_CACHE", "vectors")
