"""Seeded damage to files, as from a failing disk."""

from __future__ import annotations

import random
from pathlib import Path

DAMAGES = ("flip", "truncate", "zero", "swap")


def damage_file(path: Path, damage: str, draw: random.Random) -> None:
    """Flip, truncate, zero or swap bytes of a file; or remove it, or append to it."""
    data = bytearray(path.read_bytes())
    size = len(data)
    if damage == "remove":
        path.unlink()
        return
    if damage == "grow":
        data += draw.randbytes(draw.randrange(1, 100))
    elif size:
        at, length = draw.randrange(size), draw.randrange(1, 1 + max(1, size // 4))
        if damage == "flip":
            for _ in range(draw.choice((1, 3, 20))):
                data[draw.randrange(size)] ^= 1 << draw.randrange(8)
        elif damage == "truncate":
            del data[at:]
        elif damage == "zero":
            data[at : at + length] = bytes(len(data[at : at + length]))
        else:
            other = draw.randrange(size)
            length = min(length, size - max(at, other), abs(at - other) or 1)
            first, second = data[at : at + length], data[other : other + length]
            data[at : at + length], data[other : other + length] = second, first
    path.write_bytes(data)
