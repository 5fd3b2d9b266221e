"""transformers, late and without its chatter."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenmatch.errors import MissingExtraError


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Import transformers and hold back its warnings, such as those on weights we do not use."""
    with warnings.catch_warnings():
        # What it and torch mean to do otherwise one day is no concern of who only scores texts.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        with _quiet_log():
            yield


@contextmanager
def _quiet_log() -> Iterator[None]:
    try:
        import torch  # noqa: F401
        from transformers.utils import logging as untyped
    except ImportError:
        raise MissingExtraError(
            "pretrained models need torch and transformers; "
            "install them with: pip install 'evenmatch[torch]'"
        ) from None
    logging: Any = untyped  # its functions carry no types
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
