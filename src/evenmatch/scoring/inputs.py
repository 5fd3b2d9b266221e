"""Input checks: make pairs from lists of texts, and a `Run` from settings given by name.

Wrong input raises an InputError that says what was given and what was expected. Input that is
probably wrong raises a warning: text in another language than the model's, references that look
transposed, and texts that were truncated.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import RemoteExecutor
from evenmatch.registry import part_settings
from evenmatch.registry.opening import StandsFor
from evenmatch.registry.parts import check_at_least, check_values
from evenmatch.types import Cache, Pair, Run, Scores
from evenmatch.units.keyphrases import Phrases
from evenmatch.vectors.transformer import Transformer

P = TypeVar("P")

ENGLISH_ONLY = frozenset(
    "minilm sentence-transformers/all-MiniLM-L6-v2 bert-base-uncased bert-large-uncased "
    "distilbert-base-uncased roberta-base roberta-large albert-base-v2".split()
)

# Frequent function words that are rare in the other languages of this table.
_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the of and to in is was that for it with as on be by this are from",
        "German": "der die das und ist nicht ein eine zu mit den von auf für sich dem",
        "French": "le les des est une et dans que pour qui pas sur au plus du par",
        "Spanish": "el los las una que por con para es del se lo como más y su",
        "Italian": "il di che gli per una sono della con non è anche dei nel lo",
        "Portuguese": "o os uma que não com para é do da em dos as por mais ao",
        "Dutch": "de het een van en niet dat zijn met voor op te ook aan er",
    }.items()
}


_SAMPLE_SIZE = 200  # pairs
_SQUARE_SAMPLE = 30  # reference lists and their texts that are compared with each other
_MIN_WORDS = 20


def make_pairs(candidates: Any, references: Any, sources: Any = None) -> list[Pair]:
    """Make one pair per candidate; references are strings, or lists of one or more strings.

    Each may also be a column of a polars or pandas frame.
    """
    candidates, references, sources = map(column_values, (candidates, references, sources))
    _check_list("candidates", candidates)
    _check_list("references", references)
    if len(candidates) != len(references):
        raise InputError(_length_error(candidates, references))
    if sources is None:
        sources = [None] * len(candidates)
    else:
        _check_list("sources", sources)
        if len(sources) != len(candidates):
            raise InputError(f"{len(candidates)} candidates but {len(sources)} sources")
    nested = [not isinstance(r, str) for r in references]
    if any(nested) and not all(nested):
        raise InputError(
            f"references mix strings and lists: row {nested.index(not nested[0])} differs from "
            "row 0; give all strings or all lists of strings"
        )
    pairs = [
        Pair(
            _check_text(candidate, "candidate", row),
            _check_references(reference, row),
            None if source is None else _check_text(source, "source", row),
        )
        for row, (candidate, reference, source) in enumerate(
            zip(candidates, references, sources, strict=True)
        )
    ]
    if _look_transposed(pairs):
        count = len(pairs)
        warnings.warn(
            f"the references look transposed: each of the {count} lists has {count} texts, which "
            "resemble one candidate each; give one list per candidate, list(zip(*references)), or "
            "if they are right, silence this with "
            "warnings.filterwarnings('ignore', message='the references look transposed')",
            stacklevel=3,
        )
    return pairs


def column_values(given: Any) -> Any:
    """Return the cells of a polars or pandas column as a list; anything else unchanged."""
    for name in ("polars", "pandas"):
        module: Any = sys.modules.get(name)  # imported already if this is one of its columns
        if module is not None and isinstance(given, module.Series):
            cells = given.to_list()
            return [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in cells]
    return given


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Raise InputError for malformed pairs; those from `make_pairs` always pass."""
    if isinstance(pairs, (str, bytes, Mapping)) or not isinstance(pairs, Sequence):
        raise InputError(f"expected a list of pairs, got {type(pairs).__name__}")
    for row, pair in enumerate(pairs):
        if not isinstance(pair, Pair):
            raise InputError(
                f"row {row} must be a Pair, got {type(pair).__name__}; "
                "write em.Pair(candidate, (reference,))"
            )
        _check_text(pair.candidate, "candidate", row)
        references: Any = pair.references
        if isinstance(references, str):
            raise InputError(
                f"the references of row {row} must be a tuple of strings, got one string; "
                "write (reference,)"
            )
        _check_references(references, row)


def _check_list(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise InputError(f"{name} must be a list of texts, got one string; write [{name[:-1]}]")
    if isinstance(value, (bytes, dict, set)) or not isinstance(value, Sequence):
        kind = type(value).__name__
        how = "give one of its columns" if kind == "DataFrame" else f"write list({name})"
        hint = f"; {how}" if isinstance(value, Iterable) else ""
        raise InputError(f"{name} must be a list of texts, got {kind}{hint}")


def _length_error(candidates: Sequence[Any], references: Sequence[Any]) -> str:
    first = references[0] if references else ""
    one, many = "reference", "references"
    if not isinstance(first, str):
        one, many = "list of references", "lists of references"
    given = "1 candidate" if len(candidates) == 1 else f"{len(candidates)} candidates"
    found = f"{len(references)} {one if len(references) == 1 else many}"
    message = f"{given} but {found}; give one per candidate"
    if not isinstance(first, str) and isinstance(first, Sequence) and len(first) == len(candidates):
        message += (
            " (these look transposed: give one list per candidate, not one per reference stream)"
        )
    return message


def _look_transposed(pairs: Sequence[Pair]) -> bool:
    """Whether there are as many references as pairs, and they fit the pairs better transposed."""
    count = len(pairs)
    if count < 2 or any(len(pair.references) != count for pair in pairs):
        return False
    sample = range(min(count, _SQUARE_SAMPLE))
    words = [[set(pairs[i].references[j].lower().split()) for j in sample] for i in sample]
    own = [set(pairs[i].candidate.lower().split()) for i in sample]
    cells = [(i, j) for i in sample for j in sample if i != j]
    as_given = sum(_overlap(words[i][j], own[i]) for i, j in cells)
    transposed = sum(_overlap(words[i][j], own[j]) for i, j in cells)
    return transposed > as_given


def _overlap(a: set[str], b: set[str]) -> float:
    """Jaccard similarity of two sets of words."""
    return len(a & b) / max(len(a | b), 1)


def _check_references(value: Any, row: int) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (bytes, dict, set)) or not isinstance(value, Sequence):
        raise InputError(
            f"the reference of row {row} must be a string or a list of strings, "
            f"got {type(value).__name__}"
        )
    if not value:
        raise InputError(f"row {row} has no reference; give at least one (it may be empty text)")
    return tuple(_check_text(v, "reference", row) for v in value)


def _check_text(value: Any, what: str, row: int) -> str:
    if not isinstance(value, str):
        shown = repr(value) if len(repr(value)) < 40 else type(value).__name__
        how = "; join keyphrases with em.join_phrases" if isinstance(value, (list, tuple)) else ""
        raise InputError(f"the {what} of row {row} must be a string, got {shown}{how}")
    return value


# The settings that have a function in `make_run` to check and convert them take any value here.
_RUN_TYPES = {
    **dict.fromkeys((field.name for field in dataclasses.fields(Run)), Any),
    "device": str,
    "threads": int,
    "batch_tokens": int,
}


def make_run(**settings: Any) -> Run:
    """Make a `Run` from settings by name; raise InputError for unknown names and wrong values.

    `cache` is True, 'exact', a folder, or a `Cache`; `progress` is True or a function of
    (done, total); `on` is a session from `worker_session`.
    """
    check_values("a run", settings, _RUN_TYPES, others=("metric", "sources"))
    check_at_least(0, threads=settings.get("threads", 0))
    check_at_least(1, batch_tokens=settings.get("batch_tokens", 1))
    convert = {"cache": as_cache, "progress": _as_progress, "on": _as_worker_session}
    return Run(**{k: convert[k](v) if k in convert else v for k, v in settings.items()})


def offset_progress(run: Run, done: int, total: int) -> Run:
    """Report progress as part of a larger job of `total` items with `done` already complete."""
    report = run.progress
    if report is None:
        return run
    return dataclasses.replace(run, progress=lambda n, _: report(done + n, total))


def as_cache(given: Any) -> Cache | None:
    """Return the cache: None for False or None; in the default folder for True and 'exact'."""
    match given:
        case None | False:
            return None
        case True:
            return Cache()
        case "exact":
            return Cache(exact=True)
        case str() as folder if folder:
            return Cache(folder)
        case Cache() if given.max_bytes > 0:
            return given
    raise InputError(
        f"cache takes True, 'exact', a folder or a Cache with max_bytes above 0, got {given!r}"
    )


def _as_progress(given: Any) -> Any:
    if given is True:
        return _print_progress
    if given in (None, False) or callable(given):
        return given or None
    raise InputError(f"progress takes True or a function of (done, total), got {given!r}")


def _as_worker_session(given: Any) -> Any:
    if given is None or isinstance(given, RemoteExecutor):
        return given
    raise InputError(f"on takes a session from worker_session(...), got {given!r}")


def _print_progress(done: int, total: int) -> None:
    """Print a counter to standard error that overwrites itself."""
    sys.stderr.write(f"\r{done}/{total} pairs" + ("\n" if done == total else ""))
    sys.stderr.flush()


def warn_of_misreadings(metrics: Sequence[Any], pairs: Sequence[Pair]) -> None:
    """Warn once per call of references that a metric reads, but probably not as they are meant."""
    _warn_of_other_languages(metrics, pairs)
    _warn_of_phrases_as_references(metrics, pairs)


def _warn_of_other_languages(metrics: Sequence[Any], pairs: Sequence[Pair]) -> None:
    """Warn if an English-only model is given references in another language."""
    models = {encoder.model for metric in metrics for encoder in _parts(metric, Transformer)}
    english = sorted(models & ENGLISH_ONLY)
    if not english:
        return
    sample = pairs[:: max(1, len(pairs) // _SAMPLE_SIZE)]
    other = likely_other_language(" ".join(pair.references[0][:200] for pair in sample))
    if other:
        warnings.warn(
            f"the references look like {other}, but {english[0]} was trained on English only; "
            "choose a multilingual model, such as model='xlm-roberta-base', or silence this with "
            "warnings.filterwarnings('ignore', message='the references look like')",
            stacklevel=4,
        )


def _warn_of_phrases_as_references(metrics: Sequence[Any], pairs: Sequence[Pair]) -> None:
    """Warn if references may be the phrases of one list, given one by one."""
    for separator in {units.separator for metric in metrics for units in _parts(metric, Phrases)}:
        if any(
            len(pair.references) > 1 and not any(separator in each for each in pair.references)
            for pair in pairs
        ):
            warnings.warn(
                f"several references without {separator!r}, for a metric that reads each as a list "
                f"of phrases; if they are the phrases of one list, join them with {separator!r}, "
                "as em.join_phrases does; if each is a list of one phrase, end it with "
                f"{separator!r}",
                stacklevel=4,
            )


def warn_of_truncation(found: Sequence[Scores]) -> None:
    """Warn once per call how many pairs have a text that a metric did not read to its end."""
    rows = zip(*(scores.segments for scores in found), strict=True)
    count = sum(any("truncated" in score.flags for score in row) for row in rows)
    if count:
        warnings.warn(
            f"{count} of {len(found[0].segments)} pairs have a text that was truncated at the "
            "limit of a metric or its model, and are flagged 'truncated'; use long='windows' where "
            "the metric has it, or silence this with "
            "warnings.filterwarnings('ignore', message='.* truncated at the limit')",
            stacklevel=3,
        )


class HashedPairs:
    """Pairs that compute a hash of their candidates and references when they are iterated."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = pairs
        self.digest = ""  # of the last complete iteration

    def __iter__(self) -> Iterator[Pair]:
        found = hashlib.sha256()
        for pair in self._pairs:
            found.update(repr((pair.candidate, pair.references)).encode())
            yield pair
        self.digest = found.hexdigest()[:16]


def hash_texts(pairs: Iterable[Pair]) -> str:
    """Return a hash of the candidates and references, in order."""
    hashed = HashedPairs(pairs)
    for _ in hashed:
        pass
    return hashed.digest


def likely_other_language(text: str) -> str | None:
    """The language or script of a text that is clearly not English; None if English or unclear.

    >>> likely_other_language("Не всё то золото, что блестит, и не всё вода")
    'a non-Latin script'
    """
    letters = [c for c in text if c.isalpha()]
    if len(letters) >= _MIN_WORDS and sum(ord(c) > 0x24F for c in letters) > len(letters) / 2:
        return "a non-Latin script"
    words = re.findall(r"\w+", text.lower())
    if len(words) < _MIN_WORDS:
        return None
    hits = {name: sum(w in known for w in words) for name, known in _FUNCTION_WORDS.items()}
    best = max(hits, key=lambda name: hits[name])
    return best if best != "English" and hits[best] > 2 * hits["English"] + 2 else None


def _parts(part: Any, kind: type[P]) -> Iterator[P]:
    """Yield the instances of a class among a part and the parts it is made of."""
    if isinstance(part, kind):
        yield part
    elif isinstance(part, StandsFor):
        yield from _parts(part.meant, kind)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for value in part_settings(part).values():
            for inner in value if isinstance(value, tuple) else (value,):
                yield from _parts(inner, kind)
