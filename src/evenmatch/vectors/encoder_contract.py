"""`check_encoder`: test that an encoder keeps the contract of encoders.

Authors of encoders call it in one line. The promises are listed at the end of the module.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from evenmatch.protocols import Encoder
from evenmatch.registry.contracts import Promise, check_promises
from evenmatch.types import Array, Embedded, Units
from evenmatch.units.text import Pieces, Words

# A model's vectors in single precision differ by about this much between batches.
_TOLERANCE = 1e-5

SAMPLE_TEXTS = (
    "The cat sat on the mat.",
    "the cat sat",
    "",
    "   ",
    "a",
    "一只猫坐在垫子上",
    "القط على السجادة",
    "😀 👩‍👧 naïve café",
    "\x00 \ud800 \ufffd",
    "The cat sat on the mat.",
)


def check_encoder(encoder: Encoder, *, excused: Collection[str] = ()) -> None:
    """Raise PromiseError for the first promise that the encoder breaks.

    `excused` names promises that this encoder is known not to keep, such as 'pieces' for one that
    cannot split a text itself.

    >>> from evenmatch.vectors.hashed import Hashed
    >>> check_encoder(Hashed())
    """
    check_promises(encoder, "vectors", _PROMISES, excused)


def _sample_units() -> list[Units]:
    return [Words()(text) for text in SAMPLE_TEXTS]


def _check_shapes(encoder: Encoder) -> Iterator[str]:
    yield from _shape_errors(encoder, _sample_units())


def _check_pieces(encoder: Encoder) -> Iterator[str]:
    for marks in (False, True):
        yield from _shape_errors(encoder, [Pieces(marks=marks)(text) for text in SAMPLE_TEXTS])


def _shape_errors(encoder: Encoder, batch: Sequence[Units]) -> Iterator[str]:
    found = encoder(batch)
    if not isinstance(found, list) or len(found) != len(batch):
        yield f"{len(batch)} texts gave a {type(found).__name__} of length {len(found)}"
        return
    widths = {np.shape(e.vectors)[-1] for e in found}
    if len(widths) != 1:
        yield f"vectors have different dimensions: {sorted(widths)}"
    for units, embedded in zip(batch, found, strict=True):
        count = len(embedded.weights)
        # An encoder that splits the text itself may return the units, or leave them as given.
        wanted = count if embedded.units.by_model else len(embedded.units.groups)
        shapes = [np.shape(a) for a in (embedded.vectors, embedded.weights, embedded.mass)]
        if embedded.units.text != units.text:
            yield f"{units.text!r} came back as {embedded.units.text!r}"
        elif not units.by_model and embedded.units.groups != units.groups:
            yield f"the units of {units.text!r} were changed"
        elif [s[0] for s in shapes] != [wanted] * 3 or [len(s) for s in shapes] != [2, 1, 1]:
            yield f"{wanted} units of {units.text!r} gave arrays of shapes {shapes}"


def _check_numbers(encoder: Encoder) -> Iterator[str]:
    for embedded in encoder(_sample_units()):
        for name, values in (("weight", embedded.weights), ("mass", embedded.mass)):
            if not np.isfinite(values).all() or (np.asarray(values) < 0).any():
                yield f"a {name} in {embedded.units.text!r} is negative or not finite"
        if not np.isfinite(embedded.vectors).all():
            yield f"a vector in {embedded.units.text!r} has a value that is not finite"


def _check_empty(encoder: Encoder) -> Iterator[str]:
    if list(encoder([])):
        yield "an empty list of texts gave vectors"
    for embedded in encoder([Words()(""), Words()(" \n")]):
        if len(embedded.vectors):
            yield f"{embedded.units.text!r} gave {len(embedded.vectors)} vectors"


def _check_independence(encoder: Encoder) -> Iterator[str]:
    batch = _sample_units()
    alone = [encoder([units])[0] for units in batch]
    for name, found in (
        ("together with others", encoder(batch)),
        ("in another order", encoder(batch[::-1])[::-1]),
        ("by an equal encoder", pickle.loads(pickle.dumps(encoder))(batch)),
    ):
        for a, b in zip(alone, found, strict=True):
            if not _are_close(_arrays(a), _arrays(b)):
                yield f"{a.units.text!r} encoded {name} gave another result than alone"


def _check_ownership(encoder: Encoder) -> Iterator[str]:
    units = Words()(SAMPLE_TEXTS[0])
    first = encoder([units])[0]
    copies = [np.array(a) for a in _arrays(first)]
    for values in _arrays(first):
        if isinstance(values, np.ndarray) and values.flags.writeable:
            values[...] = -1.0
    second = encoder([units])[0]
    if not _are_close(copies, _arrays(second)):
        yield "writing to one result changes the next"


def _are_close(one: Sequence[Array], other: Sequence[Array]) -> bool:
    for a, b in zip(one, other, strict=True):
        scale = max(1.0, float(abs(np.asarray(a)).max(initial=0.0)))
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=0, atol=_TOLERANCE * scale):
            return False
    return True


def _arrays(embedded: Embedded) -> tuple[Array, Array, Array]:
    return embedded.vectors, embedded.weights, embedded.mass


_PROMISES = (
    Promise(
        "shapes",
        "one result per text, in order; a vector, a weight and a mass per unit",
        _check_shapes,
    ),
    Promise("pieces", "it splits a text itself if that is left to the encoder", _check_pieces),
    Promise("numbers", "vectors are finite; weights and masses are not negative", _check_numbers),
    Promise("empty", "an empty list of texts and empty texts are encoded too", _check_empty),
    Promise("alone", "the result of a text depends on that text only", _check_independence),
    Promise("unshared", "writing to a result does not change later results", _check_ownership),
)
