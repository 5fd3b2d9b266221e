"""bert_score's names over our parts: the same arguments, the same results, at any batch size.

`batch_size`, `nthreads` and `use_fast_tokenizer` are taken as bert_score takes them; none of them
changes a score here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from evenmatch.compat.idf_counts import counts_of
from evenmatch.compat.scorer import BERTScorer
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.pairs import make_pairs

__all__ = ["BERTScorer", "plot_example", "score"]

# (P, R, F) as tensors, or ((P, R, F), hash) with return_hash.
Result: TypeAlias = Any


def score(
    cands: Sequence[str],
    refs: Sequence[str] | Sequence[Sequence[str]],
    model_type: str | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool | Mapping[int, float] = False,
    device: str | None = None,
    batch_size: int = 64,
    nthreads: int = 4,
    all_layers: bool = False,
    lang: str | None = None,
    return_hash: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = False,
) -> Result:
    """P, R and F as three tensors: a number per candidate, or (layers, candidates).

    Of several references each takes its best; `idf` is True, or what bert_score counted.
    """
    settings = (batch_size, nthreads, all_layers, bool(idf), None, device, lang)
    rescaling = (rescale_with_baseline, baseline_path, use_fast_tokenizer)
    scorer = BERTScorer(model_type, num_layers, *settings, *rescaling)
    if isinstance(idf, Mapping) and idf:
        scorer.take_idf(counts_of(idf))
    elif idf:
        pairs = make_pairs(cands, refs)
        scorer.compute_idf([reference for pair in pairs for reference in pair.references])
    return scorer.score(cands, refs, verbose, batch_size, return_hash)


def plot_example(
    candidate: str,
    reference: str,
    model_type: str | None = None,
    num_layers: int | None = None,
    lang: str | None = None,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = False,
    fname: str = "",
) -> Aligned:
    """One alignment, which a notebook shows; drawn into `fname` (SVG or PNG) if that is given."""
    scorer = BERTScorer(
        model_type,
        num_layers,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
    )
    return scorer.plot_example(candidate, reference, fname)
