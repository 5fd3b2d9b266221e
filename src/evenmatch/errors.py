"""What can go wrong, as a tree.

EvenmatchError
├── InputError          a text, shape, option or spec we cannot take as it is
├── UnknownNameError    no part, model or data set goes by that name
├── MissingExtraError   an optional package is needed and not installed
├── DataError           a file, model or download is absent, damaged or not what it claims
└── PromiseError        a part does not do what parts of its kind promise

Each message is one line: what is wrong, what was expected, what to do.
"""


class EvenmatchError(Exception):
    """Any error evenmatch raises on purpose."""


class InputError(EvenmatchError, ValueError):
    """A text, shape, option or spec we cannot take as it is."""


class UnknownNameError(EvenmatchError, LookupError):
    """No part, model or data set goes by that name."""


class MissingExtraError(EvenmatchError, ImportError):
    """An optional package is needed and not installed."""


class DataError(EvenmatchError, OSError):
    """A file, model or download is absent, damaged or not what it claims."""


class PromiseError(EvenmatchError, AssertionError):
    """A part does not do what parts of its kind promise; raised by the checks for authors."""
