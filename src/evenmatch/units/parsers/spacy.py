"""spacy: dependency trees from a spaCy pipeline.

A pipeline is named by an embedded model, an installed package, a folder, or the content hash of a
folder used before on this machine.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.files import DIGEST_PREFIX, file_digest, models_dir, recall_path, remember_path
from evenmatch.packages import PACKAGES
from evenmatch.registry import CallContext, register
from evenmatch.types import Parse
from evenmatch.units.trees import Sentence, dependency_tree, shift_words

_EXCLUDED_PIPES = ["ner", "lemmatizer", "senter", "textcat"]
_BATCH_SIZE = 64


@register("parser", "spacy")
@dataclass(frozen=True)
class Spacy:
    """Dependency trees from a spaCy pipeline: an embedded model, a package, or a folder."""

    pipeline: str = "en_core_web_sm"

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """Return one parse per text; spaces are no words, and the pipeline splits sentences."""
        nlp = _load_pipeline(str(_resolve_pipeline(self.pipeline)))
        return [_make_parse(t, d) for t, d in zip(texts, _run_pipeline(nlp, texts), strict=True)]

    def identity(self) -> str:
        """Return the name and version of the pipeline."""
        return f"spacy {self._label()}"

    def resolve(self, context: CallContext) -> tuple[Spacy, tuple[str, ...]]:
        """Return the parser with a folder as content hash, and the pipeline with its version."""
        return self._pinned(), (f"parser {self._label()}",)

    def _pinned(self) -> Spacy:
        if not Path(self.pipeline).expanduser().is_dir():
            return self
        folder = Path(self.pipeline).expanduser()
        name = f"{DIGEST_PREFIX}{_pipeline_digest(folder)[:16]}"
        remember_path("parsers", name, folder)
        return dataclasses.replace(self, pipeline=name)

    def _label(self) -> str:
        meta = _load_pipeline(str(_resolve_pipeline(self.pipeline))).meta
        name = self._pinned().pipeline.removeprefix(DIGEST_PREFIX)
        return f"{name}@{meta.get('version', '0')}"


def parse_tokenized(pipeline: str, sentences: Iterable[Sequence[str]]) -> Iterator[Sentence]:
    """Parse sentences that are already split into words."""
    nlp = _load_pipeline(str(_resolve_pipeline(pipeline)))
    from spacy.tokens import Doc

    docs = (
        Doc(nlp.vocab, list(words), sent_starts=[n == 0 for n in range(len(words))])
        for words in sentences
    )
    for doc in nlp.pipe(docs, batch_size=_BATCH_SIZE):
        tree = dependency_tree(*_arcs(list(doc)))
        yield Sentence(tuple(t.text for t in doc), tuple(t.tag_ for t in doc), tree)


def _resolve_pipeline(pipeline: str) -> Path | str:
    """Return the folder of a pipeline, or the name of an installed package."""
    if pipeline.startswith(DIGEST_PREFIX):
        found = recall_path("parsers", pipeline)
        if found is not None and _pipeline_digest(found).startswith(
            pipeline.removeprefix(DIGEST_PREFIX)
        ):
            return found
        raise DataError(
            f"no pipeline with the content hash {pipeline} has been used on this machine; "
            "give its folder instead"
        )
    folder = models_dir() / pipeline
    if pipeline in PACKAGES and PACKAGES[pipeline].is_present(folder):
        return folder
    return Path(pipeline).expanduser() if Path(pipeline).expanduser().is_dir() else pipeline


def _pipeline_digest(folder: Path) -> str:
    return file_digest(folder / "config.cfg") if folder.is_dir() else ""


@lru_cache(maxsize=4)
def _load_pipeline(pipeline: str) -> Any:
    try:
        import spacy
    except ImportError:
        raise MissingExtraError(
            "the spacy parser needs spaCy; install it with: pip install 'evenmatch[parse]'"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about different patch versions
            nlp = spacy.load(pipeline, exclude=_EXCLUDED_PIPES)
    except (OSError, ValueError, ImportError) as error:
        raise _missing_pipeline_error(pipeline, error) from None
    if not nlp.has_pipe("parser"):
        raise InputError(
            f"the pipeline {pipeline} ({nlp.lang}) has no dependency parser; "
            "choose another pipeline, or read parses from a file: parse_file(path='FILE')"
        )
    return nlp


def _missing_pipeline_error(pipeline: str, error: Exception) -> DataError:
    if pipeline in PACKAGES:
        return DataError(
            f"the parser {pipeline!r} is not on this machine; "
            f"fetch it with: evenmatch models get {pipeline}"
        )
    why = str(error).strip().splitlines()[0][:120]
    return DataError(
        f"cannot load the spaCy pipeline {pipeline!r} ({why}); install its package, "
        "or use the English 'en_core_web_sm'"
    )


def _run_pipeline(nlp: Any, texts: Sequence[str]) -> Iterator[Any]:
    for text in texts:
        if len(text) > nlp.max_length:
            raise InputError(
                f"a text of {len(text)} characters exceeds the limit of the parser "
                f"({nlp.max_length}): {text[:40]!r}...; shorten it"
            )
    # Lone surrogates cannot be encoded as UTF-8; the replacement keeps all offsets.
    encodable = [text if text.isascii() else _replace_surrogates(text) for text in texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from nlp.pipe(encodable, batch_size=_BATCH_SIZE)


def _replace_surrogates(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def _make_parse(text: str, doc: Any) -> Parse:
    words: list[Any] = []
    trees = []
    for sentence in doc.sents:
        tokens = [token for token in sentence if not token.is_space]
        if tokens:
            trees.append(shift_words(dependency_tree(*_arcs(tokens)), len(words)))
            words += tokens
    spans = tuple((t.idx, t.idx + len(t.text)) for t in words)
    return Parse(
        text, tuple(t.text for t in words), spans, tuple(t.tag_ for t in words), tuple(trees)
    )


def _arcs(tokens: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Return heads and relations within the sentence; whitespace tokens are skipped."""
    index = {token.i: n for n, token in enumerate(tokens)}
    heads, roots = [], []
    for n, token in enumerate(tokens):
        head = token.head
        while head.i not in index and head.head.i != head.i:
            head = head.head
        heads.append(index.get(head.i, n))
        if heads[n] == n:
            roots.append(n)
    for n in roots[1:]:
        heads[n] = roots[0]
    return heads, [token.dep_ for token in tokens]
