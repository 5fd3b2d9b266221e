"""benepar: phrase trees from the Berkeley Neural Parser, an optional package."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.files import folder_digest
from evenmatch.registry import CallContext, register
from evenmatch.types import Parse
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.trees import read_brackets, shift_words


@register("parser", "benepar")
@dataclass(frozen=True)
class Benepar:
    """Penn Treebank phrases from benepar; a spaCy pipeline splits words and sentences.

    `model` is the benepar model, and `pipeline` the spaCy pipeline.
    """

    model: str = "benepar_en3"
    pipeline: str = "en_core_web_sm"

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        """Return one parse per text, with a phrase tree for each sentence."""
        parser = _load_parser(self.model)
        return [_parse_phrases(parse, parser) for parse in Spacy(self.pipeline)(texts)]

    def identity(self) -> str:
        """Return the names of the model and the pipeline, and the content hash of a folder."""
        folder = Path(self.model).expanduser()
        content = folder_digest(folder) if folder.is_dir() else ""
        return f"benepar {self.model} {content} {Spacy(self.pipeline).identity()}"

    def resolve(self, context: CallContext) -> tuple[Benepar, tuple[str, ...]]:
        """Return the parser, and the model and the pipeline for the signature."""
        return self, (f"parser {self.model}", *Spacy(self.pipeline).resolve(context)[1])


@lru_cache(maxsize=2)
def _load_parser(model: str) -> Any:
    with needs_extra(
        "the benepar parser needs benepar; install it with: pip install benepar, "
        "or use phrase_trees, which needs only spaCy"
    ):
        import benepar
    try:
        return benepar.Parser(model)
    except (OSError, LookupError, ValueError) as error:
        why = str(error).strip().splitlines()[0][:120]
        raise DataError(
            f"cannot load the benepar model {model!r} ({why}); "
            f"fetch it with: python -c \"import benepar; benepar.download('{model}')\""
        ) from None


def _parse_phrases(parse: Parse, parser: Any) -> Parse:
    import benepar

    trees = []
    for tree in parse.trees:
        first, last = tree.words[0], tree.words[-1] + 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sentence = benepar.InputSentence(
                    words=list(parse.words[first:last]), tags=list(parse.tags[first:last])
                )
                found = parser.parse(sentence)
        except ValueError as error:
            raise InputError(
                f"benepar cannot parse {parse.text[:40]!r}... ({error}); shorten the text"
            ) from None
        sentences = read_brackets(str(found))
        if [len(sentence.words) for sentence in sentences] != [last - first]:
            raise InputError(
                f"benepar returned a tree that does not cover the {last - first} words "
                "of the sentence"
            )
        trees.append(shift_words(sentences[0].tree, first))
    return dataclasses.replace(parse, trees=tuple(trees), is_constituency=True)
