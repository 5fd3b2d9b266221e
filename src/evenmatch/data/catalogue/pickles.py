"""Read pickles of plain values as data, without running code.

Some sets are published only as pickles, and unpickling can run arbitrary code. This reader accepts
only the instructions that build strings, numbers, lists and dictionaries, and replaces the only two
functions that such a pickle may call, NumPy's `dtype` and `scalar`, by its own.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

_NUMBER_TYPES = frozenset("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split())

_OPCODES = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT "
    "BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES EMPTY_LIST "
    "EMPTY_DICT EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS MEMOIZE "
    "BINPUT LONG_BINPUT PUT BINGET LONG_BINGET GET GLOBAL STACK_GLOBAL REDUCE BUILD".split()
)


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values, without running code."""
    content = path.read_bytes()
    try:
        for instruction, _, _ in pickletools.genops(content):
            if instruction.name not in _OPCODES:
                raise ValueError(f"it has the instruction {instruction.name}")
        return _PlainUnpickler(io.BytesIO(content)).load()
    except (ValueError, LookupError, TypeError, AttributeError, pickle.UnpicklingError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} is not a pickle of plain values: {reason}") from None


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("numpy") and name in ("dtype", "scalar"):
            return _NumberType if name == "dtype" else _make_number
        raise ValueError(f"it calls {module}.{name}")


class _NumberType:
    """Stands in for a NumPy dtype, which pickles create from its kind and then its byte order."""

    def __init__(self, kind: str, *_: Any) -> None:
        if kind not in _NUMBER_TYPES:
            raise ValueError("it creates an object that is not a number")
        self.dtype = np.dtype(kind)

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|"):
            raise ValueError("it sets the state of an object")
        self.dtype = self.dtype.newbyteorder(state[1])


def _make_number(kind: Any, content: Any) -> Any:
    if not isinstance(kind, _NumberType) or not isinstance(content, bytes):
        raise ValueError("it creates an object that is not a number")
    return np.frombuffer(content, kind.dtype)[0].item()
