"""The table of all parts: one row here adds a new part to every contract test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Row:
    """The spec of a part, the models it needs, and the promises it is excused from."""

    spec: str
    model: bool | str = (
        False  # True is the embedded MiniLM; a string names others, separated by spaces
    )
    excused: tuple[str, ...] = ()
    slow: bool = False


# BLEU pools the n-grams of all references, so several can be better than the best of them.
_POOLS = ("best reference",)

TABLE: dict[str, tuple[Row, ...]] = {
    "units": (
        Row("words"),
        Row("words(lower=True)"),
        Row("pieces"),
        Row("pieces(marks=True)"),
        Row("closing"),
        Row("opening"),
        Row("whole_text"),
        Row("sentences"),
        Row("subtrees", model="en_core_web_sm"),
        Row("subtrees(paths=False, multiset=True, lower=True)", model="en_core_web_sm"),
        Row("constituents", model="en_core_web_sm"),
        Row("constituents(label='phrase', words=False)", model="en_core_web_sm"),
        Row("phrases"),
        Row("phrases(separator='|', stem='none', tokens='words')"),
    ),
    "parser": (
        Row("spacy", model="en_core_web_sm"),
        Row("phrase_trees", model="en_core_web_sm"),
        Row("benepar(model='benepar_en3_large')"),
        Row("parse_file(path='parses.conllu')"),
    ),
    "weighting": (Row("uniform"), Row("norm"), Row("idf")),
    "vectors": (
        Row("hashed"),
        Row("hashed(dim=3, lower=False, mass=norm)"),
        Row("bare"),
        Row("transformer", model=True),
        Row("transformer(layer=2, pool='mean', mass=norm)", model=True),
        Row("transformer(layer='last', long='windows')", model=True),
        Row("transformer(layer=1, pad_to=40)", model=True),
        Row("mover", model=True),
        Row("mover(layer=4, layers=3, n_gram=2, stop_words=['the'])", model=True),
        Row("lookup(model='minilm')", model=True),
    ),
    "similarity": (
        Row("cosine"),
        Row("dot"),
        Row("same_label"),
        Row("same_label(base=floor(low=0.1))"),
        Row("floor"),
        Row("floor(base=dot, low=-2.0)"),
        Row("euclidean"),
        Row("euclidean(squared=True)"),
        Row("exact"),
        Row("token_f1"),
        Row("edit"),
        Row("phrase"),
        Row("substring"),
        Row("semantic", model=True),
        Row("semantic(vectors=hashed)"),
        Row("by_metric", model=True),
        Row("by_metric(metric=rouge(share='L'))"),
    ),
    "alignment": (
        Row("greedy"),
        Row("lsa"),
        Row("mutual"),
        Row("emd"),
        Row("sinkhorn"),
        Row("sinkhorn(epsilon=0.5, iterations=20)"),
        Row("partial"),
        Row("partial(price=-0.2)"),
        Row("unbalanced"),
        Row("unbalanced(price=1.0, epsilon=0.01, iterations=20)"),
        Row("row_mask"),
        Row("recursive"),
        Row("recursive(iterations=7, legacy=True)"),
        Row("topk"),
        Row("auction"),
        Row("auction(iterations=3, factor=0.9)"),
    ),
    "scoring": (
        Row("prf"),
        Row("rescale(low=0.3)"),
        Row("rescale(low=-1.0, base=rescale(low=0.5))"),
        Row("average"),
        Row("partial_prf"),
        Row("partial_prf(credit=1.0, penalty=3.0, new=0.1, repeated=0.2)"),
        Row("worst"),
        Row("unweighted"),
        Row("unweighted(base=average)"),
        Row("worst(share=0.5)"),
        Row("rescale(low=0.3, base=average)"),
        Row("nearness"),
        Row("nearness(linear=True)"),
        Row("fine_grained"),
        Row("fine_grained(mode='paper', repetition=False, quantity=False, both_empty=0.5)"),
        Row("f1_at"),
        Row("f1_at(k=5, pad=False, average='micro')"),
        Row("f1_at(k=10, report='recall')"),
        Row("average_precision"),
        Row("average_precision(k=3)"),
        Row("ndcg"),
        Row("ndcg(k=3, ideal='predictions')"),
        Row("alpha_ndcg"),
        Row("alpha_ndcg(alpha=0.2, k=3)"),
        Row("best_match"),
        Row("token_match"),
    ),
    "metric": (
        Row("align(vectors=hashed)"),
        Row("align(vectors=hashed, alignment=lsa, scoring=worst)"),
        Row("blend(parts=[chrf, align(vectors=hashed(weights=idf))], weights=[1.0, -0.5])"),
        Row("monotone(base=ter, at=[0.0, 1.0], to=[5.0, 1.0])"),
        Row("counterfactual_mean(base=chrf, attributes=['gender', 'race'])"),
        Row("reference_length"),
        Row("sentinel_length"),
        Row("sentinel_random(seed=1)"),
        Row("align(units=words(lower=True), vectors=hashed(dim=8), similarity=dot)"),
        Row("align(vectors=hashed, similarity=floor(low=0.2), alignment=lsa)"),
        Row("align(vectors=hashed(mass=norm), alignment=emd)"),
        Row("align(vectors=hashed, alignment=sinkhorn(epsilon=0.5), scoring=rescale(low=0.4))"),
        Row("align(vectors=hashed(weights=idf))"),
        Row("bertscore", model=True),
        Row("bertscore(idf=True)", model=True),
        Row("f_disc", model=True),
        Row("f_static", model=True),
        Row("f_static(idf=False)", model=True),
        Row("f_cont", model=True),
        Row("f_partial", model=True),
        Row("smart1"),
        Row("smart1(metric=f_disc, alignment=lsa)", model=True),
        Row("align(vectors=hashed(mass=norm), alignment=partial(price=0.1), scoring=partial_prf)"),
        Row("lisa_rowmask", model=True),
        Row("lisa_recursive(iterations=7)", model=True),
        Row("lisa_topk(include_padding=64)", model=True),
        Row("lisa_auction", model=True),
        Row("eot", model=True),
        Row("wmt_blend", model=True),
        Row("mqm_blend", model=True),
        Row("fluent_blend", model="smollm2", slow=True),
        Row("bertscore_even", model=True),
        Row("f_disc_even(marks=True)", model=True),
        Row("moverscore", model=True),
        Row("moverscore(version=1, n_gram=2)", model=True),
        Row("likelihood", model="smollm2", slow=True),
        Row("likelihood(direction='recall', prompt='{source} = {target}')", "smollm2", slow=True),
        Row("bartscore", model="facebook/bart-large-cnn"),
        Row("bartscore_precision", model="facebook/bart-large-cnn"),
        Row("bartscore_recall", model="facebook/bart-large-cnn"),
        Row("prism", model="facebook/m2m100_418M"),
        Row("regression(model='Elron/bleurt-tiny-512')", model="Elron/bleurt-tiny-512"),
        Row("fitted(model='made-here/fitted')", model="made-here/fitted"),
        Row("bleurt", model="Elron/bleurt-base-512"),
        Row("frugalscore", model="moussaKam/frugalscore_tiny_bert-base_bert-score"),
        Row("bleu", excused=_POOLS),
        Row("bleu_nltk", excused=_POOLS),
        Row("chrf"),
        Row("chrf_nltk"),
        Row("ter"),
        Row("rouge"),
        Row("rouge1"),
        Row("rouge2"),
        Row("rougeL"),
        Row("nist"),
        Row("meteor", model="wordnet"),
        Row("keyphrases"),
        Row("keyphrases(vectors=hashed, similarity=cosine, scoring=token_match)"),
        Row("fg"),
        Row("fg(mode='paper', duplicates='wrong', invalid='keep', tokens='words')"),
        Row("fg(similarity=by_metric)", model=True),
        Row("fb", model="fb"),
        Row("phrase_scorer", model="fb"),
        Row("keyphrase_f1(k='O', average='mean', no_reference='skip')"),
        Row("f1_at_5"),
        Row("f1_at_10"),
        Row("f1_at_o"),
        Row("recall_at_10"),
        Row("recall_at_50"),
        Row("keyphrase_map"),
        Row("keyphrase_ndcg"),
        Row("keyphrase_alpha_ndcg"),
        Row("sem_f1", model=True),
        Row("struct_dep", model="minilm en_core_web_sm"),
        Row("struct_dep_head(alignment=lsa)", model="minilm en_core_web_sm"),
        Row("struct_con(weight='log_length')", model="minilm en_core_web_sm"),
        Row("struct_con_label(alignment=emd)", model="minilm en_core_web_sm"),
        Row("struct_con_head", model="minilm en_core_web_sm"),
        Row("f1_at_m"),
    ),
}


def rows(*kinds: str) -> list[Any]:
    """Return test parameters for the rows of these kinds, or of all, with `model` markers."""
    return [
        pytest.param(row, id=row.spec, marks=_marks(row))
        for kind in kinds or TABLE
        for row in TABLE[kind]
    ]


def _marks(row: Row) -> list[pytest.MarkDecorator]:
    slow = [pytest.mark.slow] if row.slow else []
    if isinstance(row.model, str):
        return [pytest.mark.model(*row.model.split()), *slow]
    return [pytest.mark.model, *slow] if row.model else slow
