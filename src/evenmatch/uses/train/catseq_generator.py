"""A trained generator of keyphrases in a folder: written, read again, and put to use."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from evenmatch.data.documents import Document
from evenmatch.data.rows import appearing
from evenmatch.errors import DataError, InputError
from evenmatch.uses.train.catseq_batch import batch_of
from evenmatch.uses.train.catseq_decoding import LONGEST, write
from evenmatch.uses.train.catseq_model import CatSeq, Shape
from evenmatch.uses.train.catseq_search import search
from evenmatch.uses.train.catseq_vocabulary import Vocabulary
from evenmatch.uses.train.catseq_words import Example, Words, example_of, groups_of

WEIGHTS, FACTS = "weights.safetensors", "generator.json"
_AT_A_TIME = 64


@dataclass(frozen=True, eq=False)
class Generator:
    """A model and the words it knows; of a document it reads `longest` words."""

    model: CatSeq
    vocabulary: Vocabulary
    longest: int = 400

    def __call__(
        self, documents: Sequence[Document], *, beam: int = 1, steps: int = LONGEST
    ) -> list[tuple[str, ...]]:
        """The keyphrases written for each document, present ones first, none twice.

        `beam` is how many beginnings a search keeps; with 1 the likeliest word is taken each time.
        A document without words gets no phrases.
        """
        if beam < 1 or steps < 1:
            raise InputError(f"beam and steps must be at least 1, got {beam} and {steps}")
        examples = [example_of(document, self.longest) for document in documents]
        full = {i: each for i, each in enumerate(examples) if each.words}
        found = self._written([*full.values()], beam, steps)
        phrases = dict(zip(full, map(_phrases, found), strict=True))
        return [phrases.get(i, ()) for i in range(len(examples))]

    def _written(self, examples: Sequence[Example], beam: int, steps: int) -> list[Words]:
        if beam > 1:
            return [
                search(self.model, each, self.vocabulary, width=beam, longest=steps)
                for each in examples
            ]
        # Documents of like length side by side: what is written does not depend on neighbours.
        order = sorted(range(len(examples)), key=lambda i: len(examples[i].words))
        found: dict[int, Words] = {}
        for start in range(0, len(order), _AT_A_TIME):
            some = order[start : start + _AT_A_TIME]
            batch = batch_of([examples[i] for i in some], self.vocabulary)
            written = write(self.model, batch, self.vocabulary, longest=steps)
            found.update(zip(some, written.words, strict=True))
        return [found[i] for i in range(len(examples))]

    def save(self, folder: Path) -> None:
        """Write weights and words into a folder; the file of words comes last and completes it."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v.contiguous() for k, v in self.model.parts.state_dict().items()}
        with appearing(str(folder / WEIGHTS)) as place:
            save_file(weights, place)
        facts = {
            "shape": dataclasses.asdict(self.model.shape),
            "longest": self.longest,
            "words": self.vocabulary.words,
        }
        with appearing(str(folder / FACTS)) as place:
            Path(place).write_text(json.dumps(facts), "utf-8")


def _phrases(words: Iterable[str]) -> tuple[str, ...]:
    present, absent = groups_of(words)
    return tuple(dict.fromkeys(map(" ".join, (*present, *absent))))


def load_generator(folder: str | PathLike[str]) -> Generator:
    """The generator in a folder that training wrote."""
    place = Path(folder).expanduser()
    if not is_generator(place):
        raise DataError(
            f"there is no keyphrase generator in {place}; "
            f"train one with: evenmatch catseq train CONFIG.toml -o {place}"
        )
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        facts = json.loads((place / FACTS).read_text("utf-8"))
        vocabulary = Vocabulary(tuple(facts["words"]))
        model = CatSeq(Shape(**facts["shape"]), len(vocabulary))
        model.parts.load_state_dict(load_file(place / WEIGHTS))
        return Generator(model, vocabulary, int(facts["longest"]))
    except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise DataError(f"cannot read {place} ({type(error).__name__}); train it again") from None


def is_generator(folder: Path) -> bool:
    """Whether training has completed a generator there."""
    return (folder / FACTS).is_file() and (folder / WEIGHTS).is_file()
