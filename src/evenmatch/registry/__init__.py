"""The registry: parts by name, and spec strings that describe them.

In: a name or a spec string such as `align(alignment=lsa)`. Out: the part, or the spec of a part.
Begin with `parts.py` (registration), then `specs.py` (reading and writing specs) and
`opening.py` (what a part's settings mean on this machine).
`contracts.py` checks the properties that every part must have.
"""

from evenmatch.registry.opening import CallContext, make_signature, resolve
from evenmatch.registry.parts import (
    KINDS,
    check_settings,
    find_entry,
    kind_of,
    names,
    part_settings,
    register,
)
from evenmatch.registry.specs import build, spec

__all__ = [
    "KINDS",
    "CallContext",
    "build",
    "check_settings",
    "find_entry",
    "kind_of",
    "make_signature",
    "names",
    "part_settings",
    "register",
    "resolve",
    "spec",
]
