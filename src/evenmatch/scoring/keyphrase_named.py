"""Keyphrase metrics by name: fg, fb, f1_at_5, f1_at_m, and F1 at any other cut."""

from __future__ import annotations

from typing import Any, Literal

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.registry import register
from evenmatch.registry.borrowing import with_settings_of
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.keyphrase_by_metric import ByMetric
from evenmatch.scoring.keyphrase_f1 import F1At
from evenmatch.scoring.keyphrase_fine import FineGrained
from evenmatch.scoring.keyphrase_lists import Policy, Which
from evenmatch.scoring.keyphrase_scorer import OWN_SCORER, PhraseScorer
from evenmatch.similarity.strings import Exact, PhraseLikeness
from evenmatch.types import Similarity
from evenmatch.units.phrases import Phrases


@register("metric", "fg")
def fg(
    mode: Literal["released", "paper"] = "released",
    which: Which = "all",
    similarity: Similarity = PhraseLikeness(),
    repetition: bool = True,
    quantity: bool = True,
    both_empty: float = 1.0,
    duplicates: Policy = "drop",
    reference_duplicates: Literal["drop", "keep"] = "drop",
    invalid: Policy = "drop",
    most: int = 200,
    no_reference: Literal["count", "skip"] = "count",
    stem: Literal["porter", "none"] = "porter",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """FG: each phrase by its most similar reference phrase, less for repetition and number.

    `fine_grained` explains `mode`, `repetition`, `quantity` and `both_empty`; `keyphrases` the
    policies after them; `phrases` the last two. `similarity` may be `edit` or `token_f1`
    alone, or semantic: `by_metric(metric=f_disc)` (paper 004).
    """
    return KeyphraseMetric(
        Phrases(stem=stem, tokens=tokens),
        which,
        duplicates,
        reference_duplicates,
        invalid,
        most,
        no_reference,
        similarity=similarity,
        alignment=Greedy(),
        scoring=FineGrained(mode, repetition, quantity, both_empty),
    )


@register("metric", "fb")
def fb(
    model: str = OWN_SCORER,
    mode: Literal["released", "paper"] = "paper",
    which: Which = "all",
    both_empty: float = 1.0,
    duplicates: Policy = "drop",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """FB: the FG score with phrases compared by a trained scorer, through Algorithm 1.

    `model` is the folder of a scorer that `evenmatch fit --keyphrases` trained; by default the
    one it put among the models. The rest is as in `fg`, but after the paper, which is all there is
    to follow: the authors' released code does something else (paper 004, eq. 8).
    """
    return fg(
        mode,
        which,
        ByMetric(PhraseScorer(model)),
        both_empty=both_empty,
        duplicates=duplicates,
        tokens=tokens,
    )


@register("metric", "keyphrase_f1")
def keyphrase_f1(
    k: int | Literal["M", "G", "O"] = "M",
    which: Which = "all",
    pad: bool = True,
    average: Literal["macro", "mean", "micro"] = "macro",
    similarity: Similarity = Exact(),
    duplicates: Policy = "drop",
    reference_duplicates: Literal["drop", "keep"] = "drop",
    invalid: Policy = "drop",
    most: int = 200,
    no_reference: Literal["count", "skip"] = "count",
    stem: Literal["porter", "none"] = "porter",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """F1 of the first `k` phrases, phrases matched one to one once stemmed.

    `f1_at` explains `k`, `pad` and `average`; `keyphrases` the policies after `similarity`;
    `phrases` the last two. The usual ones are those of Chan et al. (2019).
    """
    return KeyphraseMetric(
        Phrases(stem=stem, tokens=tokens),
        which,
        duplicates,
        reference_duplicates,
        invalid,
        most,
        no_reference,
        similarity=similarity,
        alignment=Lsa(),
        scoring=F1At(k, pad, average),
    )


@register("metric", "f1_at_5")
@with_settings_of(keyphrase_f1, "k")
def f1_at_5(**settings: Any) -> KeyphraseMetric:
    """F1@5: the first five phrases, made up to five by wrong ones (see `keyphrase_f1`)."""
    return keyphrase_f1(5, **settings)


@register("metric", "f1_at_m")
@with_settings_of(keyphrase_f1, "k", "pad")
def f1_at_m(**settings: Any) -> KeyphraseMetric:
    """F1@M: all phrases there are (see `keyphrase_f1`)."""
    return keyphrase_f1("M", **settings)
