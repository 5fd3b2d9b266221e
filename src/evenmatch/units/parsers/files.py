"""parse_file: read the output of any parser from a CoNLL-U or Penn Treebank file."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evenmatch.errors import DataError
from evenmatch.files import DIGEST_PREFIX, recall_path, remember_path
from evenmatch.registry import CallContext, register
from evenmatch.types import Parse, Tree
from evenmatch.units.trees import ESCAPES, Sentence, read_brackets, read_conllu, shift_words

_IGNORED_CHARACTERS = re.compile(r"[\s\"'`“”‘’]+|-[LR][RSC]B-|[()\[\]{}]")
_ESCAPED = {plain: [e for e, p in ESCAPES.items() if p == plain] for plain in ESCAPES.values()}
_QUOTES = "\"'`“”‘’"


@register("parser", "parse_file")
@dataclass(frozen=True)
class ParseFile:
    """Trees from the file `path`: CoNLL-U (dependencies) or Penn Treebank brackets (phrases).

    The format is recognized by the content. A text is looked up by its characters, ignoring
    spaces, quotation marks and brackets, as one sentence of the file or several in a row.
    """

    path: str

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """Return one parse per text; raise DataError for a text that is not in the file."""
        sentences, phrases, starts = _parse_content(self.path, self._read()[1])
        return [self._find_parse(text, sentences, phrases, starts) for text in texts]

    def identity(self) -> str:
        """Return the content hash of the file."""
        return f"parse_file {self._read()[0]}"

    def resolve(self, context: CallContext) -> tuple[ParseFile, tuple[str, ...]]:
        """Return the parser with its path replaced by the content hash of the file."""
        digest = self._read()[0]
        name = remember_path("parses", self._resolve_path(), digest)
        return dataclasses.replace(self, path=name), (f"parses {digest[:12]}",)

    def _read(self) -> tuple[str, bytes]:
        """Return content hash and content of the file, from one reading."""
        path = self._resolve_path()
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read the parses in {path}: {error}") from None
        digest = hashlib.sha256(content).hexdigest()
        if self.path.startswith(DIGEST_PREFIX) and not digest.startswith(
            self.path.removeprefix(DIGEST_PREFIX)
        ):
            raise DataError(
                f"{path} no longer has the content {self.path}; give the file that has it"
            )
        return digest, content

    def _resolve_path(self) -> Path:
        path = Path(self.path).expanduser()
        if self.path.startswith(DIGEST_PREFIX):
            path = recall_path("parses", self.path) or path
        if not path.is_file():
            raise DataError(
                f"there is no parse file {self.path}; give a CoNLL-U or Penn Treebank file"
            )
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
        target = _normalize(text)
        for start in (
            s for size in range(1, len(target) + 1) for s in starts.get(target[:size], ())
        ):
            end, joined = start, ""
            while end < len(sentences) and len(joined) < len(target):
                joined += _normalize("".join(sentences[end].words))
                end += 1
            if joined == target:
                return _make_parse(text, sentences[start:end], phrases)
        raise DataError(
            f"{self.path} contains no parse of {text[:60]!r}; add the parse of every text to it"
        )


@lru_cache(maxsize=4)
def _parse_content(path: str, data: bytes) -> tuple[list[Sentence], bool, dict[str, list[int]]]:
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
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
    """Remove the characters that may differ between a treebank and its text."""
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
    """Return the span of each word in the text, also if the text has another form of it."""
    spans: list[tuple[int, int]] = []
    at = 0
    for word in words:
        while at < len(text) and text[at].isspace():
            at += 1
        size = next((len(w) for w in (word, *_ESCAPED.get(word, ())) if text.startswith(w, at)), -1)
        if size < 0:  # a different quotation mark, or one that the text omits
            size = 1 if text[at : at + 1] in _QUOTES and text[at : at + 1] else 0
        spans.append((at, at + size))
        at += size
    return tuple(spans)
