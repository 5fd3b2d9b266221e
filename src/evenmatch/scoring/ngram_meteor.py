"""meteor as nltk computes it, with WordNet's synonyms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenmatch.errors import InputError
from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_library import library, release
from evenmatch.scoring.ngram_rows import best, overlap
from evenmatch.scoring.ngram_tokens import Spaced, spaced
from evenmatch.scoring.ngram_wordnet import wordnet
from evenmatch.scoring.pairs import check_pairs
from evenmatch.storage.packages import EMBEDDED
from evenmatch.types import Pair, Score, Scores
from evenmatch.units.stemming import stemmer


@register("metric", "meteor")
@dataclass(frozen=True)
class Meteor:
    """METEOR by nltk: words that agree in form, stem or meaning, less a penalty for their order.

    `alpha` weighs precision against recall. `beta` and `gamma` shape the penalty, which knows no
    shortest text: equal texts of one word score only 0.5. The synonyms are English and come with
    `evenmatch models get wordnet`. `tokenizer` says what a word is: 'whitespace' cuts between
    spaces; 'words' takes words of any script, characters where a script has no spaces, and single
    symbols; 'auto' is 'whitespace', but 'words' for a pair that is not mostly Latin.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    tokenizer: Spaced = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not (0 <= self.alpha <= 1 and self.beta >= 0 and 0 <= self.gamma <= 1):
            raise InputError(
                "meteor needs alpha and gamma between 0 and 1 and beta not below 0, "
                f"got {self.alpha}, {self.gamma} and {self.beta}"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; the best reference counts."""
        check_pairs(pairs)
        meteor: Any = library("nltk.translate.meteor_score", package="nltk").single_meteor_score
        synonyms, stems = wordnet(), stemmer()

        def score(candidate: str, reference: str) -> Score:
            given, wanted = spaced(self.tokenizer, candidate, reference)
            return overlap(
                meteor(
                    wanted,
                    given,
                    stemmer=stems,
                    wordnet=synonyms,
                    alpha=self.alpha,
                    beta=self.beta,
                    gamma=self.gamma,
                )
            )

        return Scores(tuple(best(pair, score) for pair in pairs), self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version, and WordNet by content."""
        return (release("nltk"), f"wordnet@{EMBEDDED['wordnet'].sha256[:12]}")

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)
