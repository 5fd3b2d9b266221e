"""Names for parts: a spec string builds a part, and a part says its spec."""

from evenmatch.registry.entries import KINDS, Entry, entry, kind_of, names, register
from evenmatch.registry.hints import check_settings, settings
from evenmatch.registry.reading import build
from evenmatch.registry.writing import pinned, signature, sources, spec

__all__ = [
    "KINDS",
    "Entry",
    "build",
    "check_settings",
    "entry",
    "kind_of",
    "names",
    "pinned",
    "register",
    "settings",
    "signature",
    "sources",
    "spec",
]
