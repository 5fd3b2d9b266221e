"""The exceptions that evenmatch raises.

EvenmatchError
├── InputError          an invalid text, shape, option or spec
├── UnknownNameError    no part, model or data set has that name
├── MissingExtraError   an optional package is needed, or a plug-in cannot be imported
├── DataError           a file, model or download is missing, damaged or not the expected one
└── PromiseError        a part violates the contract of its kind

Each message is one line: what is wrong, what was expected, what to do.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class EvenmatchError(Exception):
    """Base class of all exceptions that evenmatch raises deliberately."""


class InputError(EvenmatchError, ValueError):
    """A text, shape, option or spec is invalid."""


class UnknownNameError(EvenmatchError, LookupError):
    """No part, model or data set has that name."""


class MissingExtraError(EvenmatchError, ImportError):
    """An optional package is needed and not installed, or a plug-in cannot be imported."""


class DataError(EvenmatchError, OSError):
    """A file, model or download is missing, damaged or not the expected one."""


class PromiseError(EvenmatchError, AssertionError):
    """A part violates the contract of its kind; raised by `check_solver` and similar functions."""


@contextmanager
def needs_extra(message: str) -> Iterator[None]:
    """Import optional packages in this context; one that is missing raises MissingExtraError."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(message) from None
