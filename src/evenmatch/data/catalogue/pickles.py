"""Read pickles of plain values as data, without running code.

Some sets are published only as pickles, and unpickling can run arbitrary code. This reader refuses
every instruction but those that build strings, numbers, lists and dictionaries, and every function
that a pickle names except the two that build NumPy numbers, which it replaces by its own.
"""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN_OPCODES = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT "
    "BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES EMPTY_LIST "
    "EMPTY_DICT EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS MEMOIZE "
    "PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD".split()
)

_NUMBER_TYPES = frozenset("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split())

_MALFORMED = (pickle.UnpicklingError, EOFError, ValueError, LookupError, TypeError, AttributeError)


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values, without running code."""
    content = path.read_bytes()
    try:
        for instruction, _, _ in pickletools.genops(content):
            if instruction.name not in _PLAIN_OPCODES:
                raise ValueError(f"it has the instruction {instruction.name}")
        return _PlainUnpickler(BytesIO(content)).load()
    except _MALFORMED as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} is not a pickle of plain values: {reason}") from None


# The unpickler written in Python keeps its memo in a dictionary. The compiled one keeps a list; ten
# bytes can make it allocate gigabytes.
class _PlainUnpickler(pickle._Unpickler):
    def find_class(self, package: str, name: str) -> Any:
        if not package.startswith("numpy") or name not in ("dtype", "scalar"):
            raise ValueError(f"it calls {package}.{name}")
        return _NumberType if name == "dtype" else _NumberBuilder()


class _NumberType:
    """Stands for a NumPy dtype in a pickle; its state holds the byte order."""

    def __init__(self, kind: str, *_: Any) -> None:
        if kind not in _NUMBER_TYPES:
            raise ValueError("it creates an object that is not a number")
        self.dtype = np.dtype(kind)

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|"):
            raise ValueError("it sets the state of an object")
        self.dtype = self.dtype.newbyteorder(state[1])


class _NumberBuilder:
    """Stands for the function that builds a NumPy number; a pickle cannot set its state."""

    __slots__ = ()

    def __call__(self, kind: _NumberType, content: bytes) -> Any:
        return np.frombuffer(content, kind.dtype)[0].item()
