"""The libraries that compute n-gram metrics: imported late, named with their version."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType

from evenmatch.errors import MissingExtraError


def library(module: str, *, package: str) -> ModuleType:
    """A module of an n-gram library."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(package) from None


def release(package: str) -> str:
    """A library with its version, as signatures show it."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        raise _missing(package) from None


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"this metric needs {package}; install it with: pip install 'evenmatch[ngram]'"
    )
