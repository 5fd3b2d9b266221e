"""parse_file: parses made elsewhere, by any parser, read from a file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evenmatch.errors import DataError
from evenmatch.files import DIGEST_PREFIX, file_digest, recall_path, remember_path
from evenmatch.registry import register
from evenmatch.types import Parse, Tree
from evenmatch.units.trees import ESCAPES, Sentence, read_brackets, read_conllu, shift_words

_IGNORED_CHARACTERS = re.compile(r"[\s\"'`“”‘’]+|-[LR][RSC]B-|[()\[\]{}]")


_ESCAPED = {plain: [e for e, p in ESCAPES.items() if p == plain] for plain in ESCAPES.values()}


_QUOTES = "\"'`“”‘’"


@register("parser", "parse_file")
@dataclass(frozen=True)
class ParseFile:
    """Trees from a file: CoNLL-U (dependencies) or Penn brackets (phrases), by its content.

    A text is found by its characters, blanks and quotation marks aside, as one sentence of the
    file or as several in a row.
    """

    path: str

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """One parse per text; a text the file does not hold is an error."""
        sentences, phrases, starts = _load_parses(str(self._resolve_path()))
        return [self._find_parse(text, sentences, phrases, starts) for text in texts]

    def identity(self) -> str:
        """The file's content."""
        return f"parse_file {file_digest(self._resolve_path())}"

    def pin(self) -> ParseFile:
        """The file named by its content."""
        name = f"{DIGEST_PREFIX}{file_digest(self._resolve_path())[:16]}"
        remember_path("parses", name, self._resolve_path())
        return dataclasses.replace(self, path=name)

    def sources(self) -> tuple[str, ...]:
        """The parses by content."""
        return (f"parses {file_digest(self._resolve_path())[:12]}",)

    def _resolve_path(self) -> Path:
        path = Path(self.path).expanduser()
        if self.path.startswith(DIGEST_PREFIX):
            path = recall_path("parses", self.path) or path
        if not path.is_file():
            raise DataError(f"there is no file of parses {self.path}; give CoNLL-U or brackets")
        return path

    def _find_parse(
        self,
        text: str,
        sentences: Sequence[Sentence],
        phrases: bool,
        starts: Mapping[str, Sequence[int]],
    ) -> Parse:
        if not text.strip():
            return Parse(text, (), (), (), (), phrases)
        wanted = _normalize(text)
        for start in (
            s for size in range(1, len(wanted) + 1) for s in starts.get(wanted[:size], ())
        ):
            end, seen = start, ""
            while end < len(sentences) and len(seen) < len(wanted):
                seen += _normalize("".join(sentences[end].words))
                end += 1
            if seen == wanted:
                return _make_parse(text, sentences[start:end], phrases)
        raise DataError(
            f"{self.path} holds no parse of {text[:60]!r}; parse every text into that file"
        )


@lru_cache(maxsize=4)
def _load_parses(path: str) -> tuple[list[Sentence], bool, dict[str, list[int]]]:
    try:
        content = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the parses in {path}: {error}") from None
    phrases = content.lstrip().startswith("(")
    try:
        sentences = read_brackets(content) if phrases else list(read_conllu(content.splitlines()))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    starts: dict[str, list[int]] = {}
    for n, sentence in enumerate(sentences):
        starts.setdefault(_normalize("".join(sentence.words)), []).append(n)
    return sentences, phrases, starts


def _normalize(text: str) -> str:
    """The characters that a treebank and a text have in common."""
    return _IGNORED_CHARACTERS.sub("", text)


def _make_parse(text: str, sentences: Sequence[Sentence], phrases: bool) -> Parse:
    words = tuple(word for sentence in sentences for word in sentence.words)
    tags = tuple(tag for sentence in sentences for tag in sentence.tags)
    trees: list[Tree] = []
    size = 0
    for sentence in sentences:
        trees.append(shift_words(sentence.tree, size))
        size += len(sentence.words)
    return Parse(text, words, _locate_words(text, words), tags, tuple(trees), phrases)


def _locate_words(text: str, words: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where each word stands in the text, in order; one that is only written otherwise too."""
    spans: list[tuple[int, int]] = []
    at = 0
    for word in words:
        while at < len(text) and text[at].isspace():
            at += 1
        size = next((len(w) for w in (word, *_ESCAPED.get(word, ())) if text.startswith(w, at)), -1)
        if size < 0:  # a quotation mark of another kind, or one that the text leaves out
            size = 1 if text[at : at + 1] in _QUOTES and text[at : at + 1] else 0
        spans.append((at, at + size))
        at += size
    return tuple(spans)
