"""Language check: warn if an English-only model is given text in another language."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Pair
from evenmatch.vectors.transformer import Transformer

ENGLISH_ONLY = frozenset(
    {
        "minilm",
        "sentence-transformers/all-MiniLM-L6-v2",
        "bert-base-uncased",
        "bert-large-uncased",
        "distilbert-base-uncased",
        "roberta-base",
        "roberta-large",
        "albert-base-v2",
    }
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
_MIN_WORDS = 20


def warn_of_other_languages(metrics: Sequence[Any], pairs: Sequence[Pair]) -> None:
    """Warn once per call if an English-only model is given references in another language."""
    models = {
        m.vectors.model
        for m in metrics
        if isinstance(m, AlignMetric) and isinstance(m.vectors, Transformer)
    }
    english = sorted(models & ENGLISH_ONLY)
    if not english:
        return
    other = likely_other_language(" ".join(_sample_references(pairs)))
    if other:
        warnings.warn(
            f"the references look like {other}, but {english[0]} was trained on English only; "
            "choose a multilingual model, such as model='xlm-roberta-base', or silence this with "
            "warnings.filterwarnings('ignore', message='the references look like')",
            stacklevel=3,
        )


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


def _sample_references(pairs: Sequence[Pair]) -> Iterator[str]:
    step = max(1, len(pairs) // _SAMPLE_SIZE)
    return (pair.references[0][:200] for pair in pairs[::step])
