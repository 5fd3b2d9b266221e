"""What catSeq's decoder has written so far, as features of the words of a document.

A decoder that copies has to find the word after the one it copied last, and to leave out phrases
that it has written. `OutputHistory` tells attention where in the document that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenmatch.training.keyphrases.sequences import NEXT_ID, SPLIT_ID

HISTORY_COUNT = 5  # features of a document's word
_BIGRAM = 2  # words that must match for the second feature


@dataclass(frozen=True, slots=True, eq=False)
class OutputHistory:
    """The output so far, compared with the words of each document.

    `run` counts the latest words of the output that occur in the document up to and with a word;
    `written` and `phrase` say whether a word is in the output, or in its last phrase; `reached` is
    the latest place in the document from which a word was written first; `used` says which words
    of the vocabulary are in the last phrase.
    """

    run: Any  # (documents, words)
    written: Any  # (documents, words)
    phrase: Any  # (documents, words)
    reached: Any  # (documents)
    used: Any  # (documents, vocabulary)

    def append(self, source_ids: Any, tokens: Any) -> OutputHistory:
        """Return the history after one more token of each output."""
        import torch

        equal = source_ids == tokens[:, None]
        before = torch.nn.functional.pad(self.run[:, :-1], (1, 0))
        inside = ((tokens != NEXT_ID) & (tokens != SPLIT_ID))[:, None]
        first = torch.where(equal.any(1), equal.long().argmax(1), -1)
        words = self.used.shape[1]
        token = torch.where(tokens < words, tokens, 0)[:, None]
        return OutputHistory(
            equal * (1 + before),
            self.written | equal,
            (self.phrase | equal) & inside,
            torch.maximum(self.reached, first),
            self.used.scatter(1, token, True) & inside,
        )

    def features(self) -> Any:
        """Return for each word whether it may come next: (documents, words, features).

        Whether it follows the last word, and the last two, of the output, is in the output, in its
        last phrase, and after the place that was reached.
        """
        import torch

        follows = torch.nn.functional.pad(self.run[:, :-1], (1, 0))
        after = torch.arange(self.run.shape[1]) > self.reached[:, None]
        parts = (follows >= 1, follows >= _BIGRAM, self.written, self.phrase, after)
        return torch.stack(parts, dim=-1).float()

    def select(self, rows: Any) -> OutputHistory:
        """Return the history of the documents with these indices, which may repeat."""
        parts = (self.run, self.written, self.phrase, self.reached, self.used)
        return OutputHistory(*(each[rows] for each in parts))


def start_history(source_ids: Any, vocabulary: int) -> OutputHistory:
    """Return the history of empty outputs."""
    import torch

    empty = torch.zeros(source_ids.shape, dtype=torch.bool)
    return OutputHistory(
        empty.long(),
        empty,
        empty,
        torch.full((len(source_ids),), -1),
        torch.zeros((len(source_ids), vocabulary), dtype=torch.bool),
    )
