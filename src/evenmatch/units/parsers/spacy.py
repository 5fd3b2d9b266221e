"""spacy: dependency trees from a spaCy pipeline.

A pipeline is named by an embedded model, an installed package, a folder, or the content hash of a
folder used before on this machine.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.files import (
    DIGEST_PREFIX,
    folder_digest,
    models_dir,
    recall_unchanged,
    remember_path,
)
from evenmatch.packages import PACKAGES, verify_package
from evenmatch.registry import CallContext, register
from evenmatch.types import Parse
from evenmatch.units.text import replace_surrogates
from evenmatch.units.trees import dependency_tree, shift_words

_EXCLUDED_PIPES = ["ner", "lemmatizer", "senter", "textcat"]
_BATCH_SIZE = 64


@register("parser", "spacy")
@dataclass(frozen=True)
class Spacy:
    """Dependency trees from a spaCy pipeline: an embedded model, a package, or a folder."""

    pipeline: str = "en_core_web_sm"

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """Return one parse per text; spaces are no words, and the pipeline splits sentences."""
        nlp = load_pipeline(self.pipeline)
        for text in texts:
            if len(text) > nlp.max_length:
                raise InputError(
                    f"a text of {len(text)} characters exceeds the limit of the parser "
                    f"({nlp.max_length}): {text[:40]!r}...; shorten it"
                )
        # Lone surrogates cannot be encoded as UTF-8; the replacement keeps all offsets.
        encodable = [replace_surrogates(text) for text in texts]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            docs = list(nlp.pipe(encodable, batch_size=_BATCH_SIZE))
        return [_make_parse(text, doc) for text, doc in zip(texts, docs, strict=True)]

    def identity(self) -> str:
        """Return the name, version and content hash of the pipeline."""
        return f"spacy {self._label()} {_pipeline_digest(_resolve_pipeline(self.pipeline))}"

    def resolve(self, context: CallContext) -> tuple[Spacy, tuple[str, ...]]:
        """Return the parser with a folder as content hash, and the pipeline with its version."""
        return self._pinned(), (f"parser {self._label()}",)

    def _pinned(self) -> Spacy:
        folder = Path(self.pipeline).expanduser()
        if not folder.is_dir():
            return self
        name = remember_path("parsers", folder, folder_digest(folder))
        return dataclasses.replace(self, pipeline=name)

    def _label(self) -> str:
        version = load_pipeline(self.pipeline).meta.get("version", "0")
        return f"{self._pinned().pipeline.removeprefix(DIGEST_PREFIX)}@{version}"


def load_pipeline(pipeline: str) -> Any:
    """Load a pipeline by name, folder or content hash; callers share it."""
    found = _resolve_pipeline(pipeline)
    return _load_pipeline(str(found), pipeline, _pipeline_digest(found))


def _resolve_pipeline(pipeline: str) -> Path | str:
    """Return the folder of a pipeline, or the name of an installed package."""
    if pipeline.startswith(DIGEST_PREFIX):
        if found := recall_unchanged("parsers", pipeline, folder_digest):
            return found
        raise DataError(
            f"no pipeline with the content hash {pipeline} has been used on this machine; "
            "give its folder instead"
        )
    folder = models_dir() / pipeline
    if pipeline in PACKAGES and PACKAGES[pipeline].is_present(folder):
        return folder
    folder = Path(pipeline).expanduser()
    return folder if folder.is_dir() else pipeline


def _pipeline_digest(pipeline: Path | str) -> str:
    """Return the content hash of a pipeline's folder or package; '' if there is none."""
    if isinstance(pipeline, Path):
        return folder_digest(pipeline)
    found = find_spec(pipeline) if pipeline.isidentifier() else None
    folders = (found and found.submodule_search_locations) or ()
    return " ".join(folder_digest(Path(folder)) for folder in folders)


@lru_cache(maxsize=4)
def _load_pipeline(pipeline: str, name: str, digest: str) -> Any:
    """Load a pipeline; `digest`, its content hash, is part of the cache key."""
    if name in PACKAGES and pipeline == str(models_dir() / name):
        verify_package(name, Path(pipeline))
    with needs_extra(
        "the spacy parser needs spaCy; install it with: pip install 'evenmatch[parse]'"
    ):
        import spacy
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about different patch versions
            nlp = spacy.load(pipeline, exclude=_EXCLUDED_PIPES)
    except (OSError, ValueError, ImportError) as error:
        if pipeline in PACKAGES:
            raise DataError(
                f"the parser {pipeline!r} is not on this machine; "
                f"fetch it with: evenmatch models get {pipeline}"
            ) from None
        why = str(error).strip().splitlines()[0][:120]
        raise DataError(
            f"cannot load the spaCy pipeline {pipeline!r} ({why}); install its package, "
            "or use the English 'en_core_web_sm'"
        ) from None
    if not nlp.has_pipe("parser"):
        raise InputError(
            f"the pipeline {pipeline} ({nlp.lang}) has no dependency parser; "
            "choose another pipeline, or read parses from a file: parse_file(path='FILE')"
        )
    return nlp


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
