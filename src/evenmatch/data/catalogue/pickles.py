"""Read pickles of plain values as data, without running code.

Some sets are published only as pickles, and unpickling can run arbitrary code. This reader lists
the instructions with `pickletools` and executes only those that build strings, numbers, lists and
dictionaries. Any other instruction is an error.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_MARK = object()


_NUMBER_TYPES = frozenset("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split())


_IGNORED_OPCODES = frozenset({"PROTO", "FRAME", "STOP"})


_LITERAL_OPCODES = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE "
    "BINUNICODE8 BINBYTES SHORT_BINBYTES".split()
)


_CONSTANT_OPCODES: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}


_TUPLE_SIZES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class _GlobalName:
    """The name of a function that a pickle would call."""

    package: str
    name: str


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values, without running code."""
    try:
        return _PickleReader().read(path.read_bytes())
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path.name} is not a pickle of plain values: {reason}") from None


class _PickleReader:
    """A pickle machine: a stack of values and a memo of values to reuse."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self, content: bytes) -> Any:
        for instruction, argument, _ in pickletools.genops(content):
            self._execute(instruction.name, argument)
        return self._stack.pop()

    def _execute(self, name: str, argument: Any) -> None:
        if name in _LITERAL_OPCODES:
            self._stack.append(argument)
        elif name in _CONSTANT_OPCODES:
            self._stack.append(_CONSTANT_OPCODES[name]())
        elif name in _TUPLE_SIZES:
            self._stack[-_TUPLE_SIZES[name] :] = [tuple(self._stack[-_TUPLE_SIZES[name] :])]
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            parts = argument.split(" ") if name == "GLOBAL" else [self._pop(), self._pop()][::-1]
            self._stack.append(_check_global(*parts))
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[len(self._memo) if name == "MEMOIZE" else argument] = self._stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self._stack.append(self._memo[argument])
        elif name not in _IGNORED_OPCODES:
            self._collect(name)

    def _collect(self, name: str) -> None:
        """Execute the instructions that build values from others on the stack."""
        if name == "TUPLE":
            items = self._pop_to_mark()
            self._stack.append(tuple(items))
        elif name in ("APPEND", "APPENDS"):
            items = [self._pop()] if name == "APPEND" else self._pop_to_mark()
            self._stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [self._pop(), self._pop()][::-1] if name == "SETITEM" else self._pop_to_mark()
            self._stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "REDUCE":
            arguments, called = self._pop(), self._pop()
            self._stack.append(_build_number(called, arguments))
        elif name == "BUILD":
            state, dtype = self._pop(), self._pop()
            self._stack.append(_set_byte_order(dtype, state))
        else:
            raise ValueError(f"it has the instruction {name}")

    def _pop(self) -> Any:
        return self._stack.pop()

    def _pop_to_mark(self) -> list[Any]:
        at = len(self._stack) - 1 - self._stack[::-1].index(_MARK)
        items = self._stack[at + 1 :]
        del self._stack[at:]
        return items


def _check_global(package: str, name: str) -> _GlobalName:
    if not package.startswith("numpy") or name not in ("dtype", "scalar"):
        raise ValueError(f"it calls {package}.{name}")
    return _GlobalName(package, name)


def _build_number(called: Any, arguments: Any) -> Any:
    """Build a NumPy dtype or number, the only objects allowed besides plain values."""
    match called, arguments:
        case _GlobalName(_, "dtype"), (str() as kind, *_) if kind in _NUMBER_TYPES:
            return np.dtype(kind)
        case _GlobalName(_, "scalar"), (np.dtype() as kind, bytes() as content):
            return np.frombuffer(content, kind)[0].item()
    raise ValueError("it creates an object that is not a number")


def _set_byte_order(dtype: Any, state: Any) -> Any:
    if not isinstance(dtype, np.dtype) or state[1] not in ("<", ">", "|"):
        raise ValueError("it sets the state of an object")
    return dtype.newbyteorder(state[1])
