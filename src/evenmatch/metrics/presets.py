"""Metrics by name: a table of presets, and the rule that turns options into settings of parts.

A preset is a metric with some of its settings offered as options: `bertscore(layer=9)` is the
metric of the row `bertscore` with the layer of its encoder changed. To add a metric that is a
choice of existing parts, add a row to `PRESETS`. The metrics below the table are no rows, since an
option of theirs changes several parts.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evenmatch.errors import InputError
from evenmatch.models.backbone import LongTextMode
from evenmatch.models.checkpoints import Layer
from evenmatch.protocols import Weighting
from evenmatch.registry import build, register
from evenmatch.registry.parts import find_entry, setting_types
from evenmatch.scoring.metric import AlignMetric
from evenmatch.vectors.weighting import Idf, Uniform


@dataclass(frozen=True)
class Preset:
    """A named metric: the spec of the metric, the names of its options, and its documentation.

    `paths` says which setting an option sets, where the rule of `_setting_path` does not.
    """

    name: str
    metric: str
    options: str
    about: str
    paths: Mapping[str, str] = field(default_factory=dict)


_TOKENS = "model layer idf marks long trust_remote_code"
_LISA = "model layer idf include_padding long trust_remote_code"
_CONSTITUENTS = "model layer parser lower weight most_words alignment long trust_remote_code"
_SUBTREES = "model layer parser multiset lower weight most_words alignment long trust_remote_code"
_PHRASES = "duplicates reference_duplicates invalid most no_reference stem tokens"
_LIKELIHOOD = "weights long trust_remote_code adapter"

PRESETS = (
    # Token alignment
    Preset(
        "bertscore",
        "align(units=pieces(marks=True))",
        f"{_TOKENS} adapter",
        """BERTScore: match every token with its most similar one (Zhang et al. 2020).

        Equal to the bert_score package at batch size 1: special tokens can be matched to but have
        weight 0; `marks` leaves them out if False. `idf` weights tokens by inverse document
        frequency: True counts the call's references, a string names a table. `adapter` loads an
        adapter trained by `evenmatch debias`.
        """,
    ),
    Preset(
        "f_disc",
        "align(alignment=lsa)",
        f"{_TOKENS} adapter",
        "F_DISC: one-to-one alignment with the greatest total similarity (Jin & Gildea 2022).",
    ),
    Preset(
        "f_cont",
        "align(vectors=transformer(mass=norm), alignment=emd)",
        f"{_TOKENS} mass solver adapter",
        "F_CONT: optimal transport with vector norms as token masses (Jin & Gildea 2022).",
    ),
    Preset(
        "f_partial",
        "align(alignment=partial(price=0.5), scoring=partial_prf)",
        f"{_TOKENS} price credit penalty new repeated adapter",
        """F_PARTIAL: one-to-one alignment in which tokens may stay unmatched.

        For texts that differ in length, such as summaries. Tokens are matched if they are more
        similar than `price`. An unmatched token of the candidate counts like a match of similarity
        `credit` if it is new content, and like `penalty` tokens without a match if it repeats
        matched content. `credit`, `penalty`, `new` and `repeated` are settings of `partial_prf`,
        which states the formula. All five suit the embedded encoder.
        """,
        {option: f"scoring.{option}" for option in ("credit", "penalty", "new", "repeated")}
        | {"price": "alignment.price"},
    ),
    Preset(
        "f_static",
        "align(vectors=lookup(model='minilm', weights=idf(table='english')), alignment=lsa)",
        "idf",
        """F_DISC on the input embeddings of the embedded encoder, weighted by idf: no forward pass.

        `idf` names a table of document frequencies; 'english' comes with evenmatch. True counts the
        call's references, and False weights tokens equally.
        """,
    ),
    Preset(
        "eot",
        "align(units=closing, vectors=transformer(layer='last'), scoring=average)",
        "model layer long trust_remote_code",
        "Cosine similarity of the end-of-text tokens of two texts, the baseline of LiSAScore.",
    ),
    # LiSAScore: BERTScore with approximate one-to-one assignment
    Preset(
        "lisa_rowmask",
        "align(units=pieces(marks=True), alignment=row_mask)",
        _LISA,
        """LiSAScore by row masking: one-to-one, most urgent pair first (Mander & Phillips 2024).

        Special tokens can be matched to but have weight 0. `include_padding` pads every text to
        that many tokens, as the paper does to create repetition; padding tokens can be matched to
        as well.
        """,
    ),
    Preset(
        "lisa_recursive",
        "align(units=pieces(marks=True), alignment=recursive)",
        f"{_LISA} iterations factor legacy",
        """LiSAScore by recursion: refine, then take each line's maximum (Mander & Phillips 2024).

        `iterations`, `factor` and `legacy` are settings of the solver `recursive`; the others are
        those of `lisa_rowmask`.
        """,
    ),
    Preset(
        "lisa_topk",
        "align(units=pieces(marks=True), alignment=topk)",
        f"{_LISA} iterations factor",
        """LiSAScore by top-k: refine, then take the highest cells (Mander & Phillips 2024).

        `iterations` and `factor` are settings of the solver `topk`; the others are those of
        `lisa_rowmask`.
        """,
    ),
    Preset(
        "lisa_auction",
        "align(units=pieces(marks=True), alignment=auction)",
        f"{_LISA} iterations factor",
        """LiSAScore by auction: refine at full strength (Mander & Phillips 2024).

        `iterations` and `factor` are settings of the solver `auction`; the others are those of
        `lisa_rowmask`.
        """,
    ),
    # With the adapter that comes with evenmatch. It was trained for one model, up to the layer that
    # these metrics read, so neither is an option.
    Preset(
        "bertscore_even",
        "align(units=pieces(marks=True), vectors=transformer(adapter='gender'))",
        "idf marks long",
        "BERTScore on the embedded encoder with less gender bias, by the adapter `gender`.",
    ),
    Preset(
        "f_disc_even",
        "align(vectors=transformer(adapter='gender'), alignment=lsa)",
        "idf marks long",
        "F_DISC on the embedded encoder with less gender bias, by the adapter `gender`.",
    ),
    # Structure alignment
    Preset(
        "struct_dep",
        "align(units=subtrees)",
        _SUBTREES,
        """Match every dependency subtree with its most similar one (Chousa & Hirao).

        `parser`, `multiset`, `lower`, `weight` and `most_words` are settings of `subtrees`.
        `alignment` may be any solver, such as lsa or emd.
        """,
    ),
    Preset(
        "struct_dep_head",
        "align(units=subtrees, similarity=same_label)",
        _SUBTREES,
        "Like struct_dep, but only subtrees with the same root word can match.",
    ),
    Preset(
        "struct_con",
        "align(units=constituents)",
        _CONSTITUENTS,
        """Match every constituent with its most similar one (Chousa & Hirao).

        `parser`, `lower`, `weight` and `most_words` are settings of `constituents`. `alignment` may
        be any solver, such as lsa or emd.
        """,
    ),
    Preset(
        "struct_con_label",
        "align(units=constituents(label='phrase'), similarity=same_label)",
        _CONSTITUENTS,
        "Like struct_con, but only constituents with the same label can match.",
    ),
    Preset(
        "struct_con_head",
        "align(units=constituents, similarity=same_label)",
        _CONSTITUENTS,
        "Like struct_con, but only constituents with the same head word can match.",
    ),
    # Sentences, for long texts
    Preset(
        "smart1",
        "align(units=sentences, vectors=bare, similarity=by_metric(metric=chrf))",
        "metric alignment",
        """SMART-1: match every sentence with its most similar one by chrF (Amplayo et al. 2023).

        For summaries and documents: sentences are compared one by one, so no text is truncated.
        `metric` compares two sentences; it may be any metric. `alignment` may be any solver: with
        lsa each sentence has at most one partner, and with sinkhorn several share it.
        """,
        {"metric": "similarity.metric"},
    ),
    # Keyphrases
    Preset(
        "fg",
        "keyphrases",
        f"mode which similarity repetition quantity both_empty {_PHRASES}",
        """FG: partial matches count, repetition and quantity are penalized (Luo et al. 2021).

        A phrase scores its similarity to the most similar reference phrase. `mode`, `repetition`,
        `quantity` and `both_empty` are settings of `fine_grained`. `which`, `duplicates`,
        `reference_duplicates`, `invalid`, `most` and `no_reference` are policies of `keyphrases`.
        `stem` and `tokens` are settings of `phrases`. `similarity` may also be `edit` or `token_f1`
        alone, or semantic: `by_metric(metric=f_disc)`.
        """,
    ),
    Preset(
        "fb",
        "keyphrases(similarity=by_metric(metric=phrase_scorer), "
        "scoring=fine_grained(mode='paper'))",
        "model mode which both_empty duplicates tokens",
        """FB: the FG score with phrases compared by a trained model (Luo et al. 2021).

        `model` is the folder of a scorer trained by `evenmatch fit --keyphrases`; the default is
        the one in the model directory. The other settings are those of `fg`. `mode` is 'paper'
        here, since the authors' released code does not compute the FB of their equation 8.
        """,
        {"model": "similarity.metric.model"},
    ),
    Preset(
        "keyphrase_f1",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at)",
        f"k which pad average report similarity {_PHRASES}",
        """F1 of the first `k` phrases, matched one to one after stemming.

        `k`, `pad`, `average` and `report` are settings of `f1_at`. `which`, `duplicates`,
        `reference_duplicates`, `invalid`, `most` and `no_reference` are policies of `keyphrases`.
        `stem` and `tokens` are settings of `phrases`. The defaults are those of Chan et al. (2019).
        """,
    ),
    Preset(
        "f1_at_5",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k=5))",
        f"which pad average similarity {_PHRASES}",
        "F1@5: F1 of the first five phrases, padded to five with wrong ones (see `keyphrase_f1`).",
    ),
    Preset(
        "f1_at_m",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k='M'))",
        f"which average similarity {_PHRASES}",
        "F1@M: F1 of all predicted phrases (see `keyphrase_f1`).",
    ),
    Preset(
        "f1_at_10",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k=10))",
        f"which pad average similarity {_PHRASES}",
        "F1@10: F1 of the first ten phrases, padded to ten with wrong ones (see `keyphrase_f1`).",
    ),
    Preset(
        "f1_at_o",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k='O'))",
        f"which pad average similarity {_PHRASES}",
        "F1@O: F1 of as many phrases as the reference has (see `keyphrase_f1`; Yuan et al. 2020).",
    ),
    Preset(
        "recall_at_10",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k=10, report='recall'))",
        f"which average similarity {_PHRASES}",
        "R@10: share of the reference phrases among the first ten phrases (see `keyphrase_f1`).",
    ),
    Preset(
        "recall_at_50",
        "keyphrases(similarity=exact, alignment=lsa, scoring=f1_at(k=50, report='recall'))",
        f"which average similarity {_PHRASES}",
        "R@50: share of the reference phrases among the first fifty phrases (see `keyphrase_f1`).",
    ),
    Preset(
        "keyphrase_map",
        "keyphrases(similarity=exact, alignment=lsa, scoring=average_precision)",
        f"k which similarity {_PHRASES}",
        """MAP: average precision of the phrases as a ranking, averaged over documents.

        `k` is a setting of `average_precision`; the other settings are those of `keyphrase_f1`.
        """,
    ),
    Preset(
        "keyphrase_ndcg",
        "keyphrases(similarity=exact, alignment=lsa, scoring=ndcg)",
        f"k ideal which similarity {_PHRASES}",
        """NDCG of the phrases as a ranking.

        `k` and `ideal` are settings of `ndcg`; the other settings are those of `keyphrase_f1`.
        """,
    ),
    Preset(
        "keyphrase_alpha_ndcg",
        "keyphrases(similarity=substring, scoring=alpha_ndcg)",
        f"k alpha which similarity {_PHRASES}",
        """α-NDCG of the phrases as a ranking: phrases that match the same references gain less.

        A phrase matches every reference phrase that it is a part of. `k` and `alpha` are settings
        of `alpha_ndcg`; the other settings are those of `keyphrase_f1`.
        """,
    ),
    Preset(
        "sem_f1",
        "keyphrases(similarity=semantic, scoring=best_match)",
        f"model layer which {_PHRASES}",
        """Semantic F1: each phrase counts by its most similar phrase of the other list (KPEval).

        Phrases are compared by the cosine of their embeddings, and several may have the same
        partner (Wu et al. 2024). `model` and `layer` are those of the encoder, which embeds each
        phrase alone; the other settings are those of `keyphrase_f1`.
        """,
        {option: f"similarity.vectors.{option}" for option in ("model", "layer")},
    ),
    # N-grams
    Preset(
        "rouge1",
        "rouge(share='1')",
        "stemmer tokenizer",
        "ROUGE-1: overlap of words (see `rouge`).",
    ),
    Preset(
        "rouge2",
        "rouge(share='2')",
        "stemmer tokenizer",
        "ROUGE-2: overlap of bigrams (see `rouge`); 0 for a text of one word.",
    ),
    Preset(
        "rougeL",
        "rouge(share='L')",
        "stemmer tokenizer",
        "ROUGE-L: longest common subsequence of words in the whole text, ignoring line breaks.",
    ),
    # Likelihood and regression
    Preset(
        "bartscore",
        "likelihood(model='facebook/bart-large-cnn')",
        f"model prompt {_LIKELIHOOD}",
        """BARTScore: mean of precision and recall as log-probabilities (Yuan et al. 2021).

        Each is a mean over all tokens of a text, special tokens included. `weights` accepts the
        authors' bart_score.pth. `prompt` is the template for a causal model.
        """,
    ),
    Preset(
        "bartscore_precision",
        "likelihood(model='facebook/bart-large-cnn', direction='precision')",
        f"model prompt {_LIKELIHOOD}",
        "BARTScore precision: the candidate's log-probability given the reference.",
    ),
    Preset(
        "bartscore_recall",
        "likelihood(model='facebook/bart-large-cnn', direction='recall')",
        f"model prompt {_LIKELIHOOD}",
        "BARTScore recall: the reference's log-probability given the candidate.",
    ),
    Preset(
        "prism",
        "likelihood(model='facebook/m2m100_418M', source_tag='__en__', target_tag='__en__')",
        f"model source_tag target_tag {_LIKELIHOOD}",
        """PRISM: likelihood by a translation model used as a paraphraser (Thompson & Post 2020).

        The mean is over the tokens and the closing token, without the language tag. The authors'
        own model does not load in transformers directly; with a port of it, set target_tag='<en>'
        and source_tag='', since it reads without a tag.
        """,
    ),
    Preset(
        "bleurt",
        "regression(model='Elron/bleurt-base-512', limit=512)",
        "model limit long trust_remote_code adapter",
        "BLEURT: a BERT trained on human ratings; reads the reference first (Sellam et al. 2020).",
    ),
    Preset(
        "frugalscore",
        "regression(model='moussaKam/frugalscore_tiny_bert-base_bert-score', first='candidate', "
        "limit=128)",
        "model limit long trust_remote_code adapter",
        """FrugalScore: a small model distilled from a large metric (Kamal Eddine et al. 2022).

        It reads the candidate first.
        """,
    ),
)


@register("metric", "moverscore")
def moverscore(
    model: str = "minilm",
    layer: Layer = "last",
    version: Literal[1, 2] = 2,
    n_gram: int = 1,
    idf: bool | str = False,
    stop_words: tuple[str, ...] = (),
    long: LongTextMode = "truncate",
    trust_remote_code: bool = False,
) -> AlignMetric:
    """MoverScore: the earth mover's distance between the tokens of two texts (Zhao et al. 2019).

    All tokens have equal mass, so that a score depends on its pair alone. `idf` sets masses by
    inverse document frequency: True counts the call's candidates and its references separately, as
    the authors do, and a string names one table for both. `version` 1 combines the last five layers
    by power means, squares the distances and scores 1 minus their sum. `n_gram` above 1 needs
    version 1. `stop_words` are left out.
    """
    from evenmatch.alignment.transport import Emd
    from evenmatch.scoring.reducers import Nearness
    from evenmatch.similarity.vectors import Euclidean
    from evenmatch.units.text import Pieces
    from evenmatch.vectors.mover import Mover  # presets that are rows import no parts either

    first = version == 1
    if n_gram > 1 and not first:
        raise InputError(
            "moverscore's second version has no n-grams; set version=1, or leave n_gram at 1"
        )
    weighting = _idf_weighting(idf)
    vectors = Mover(
        model,
        layer,
        layers=5 if first else 1,
        n_gram=n_gram,
        candidates=weighting,
        references=weighting,
        stop_words=stop_words,
        long=long,
        trust_remote_code=trust_remote_code,
    )
    return AlignMetric(Pieces(), vectors, Euclidean(squared=first), Emd(), Nearness(linear=first))


def make_metric(name: str, **options: Any) -> Any:
    """Return the metric with that name and these options."""
    return find_entry(name).factory(**options)


# The part of a metric that has an option as its setting; a metric's own settings come first.
_OWNERS = {
    option: part
    for part, names in {
        "units": "marks parser multiset lower weight most_words stem tokens",
        "vectors": "model layer mass long trust_remote_code adapter",
        "alignment": "iterations factor legacy",
        "scoring": "mode repetition quantity both_empty k pad average report ideal alpha",
    }.items()
    for option in names.split()
}
_RENAMED = {"idf": "vectors.weights", "include_padding": "vectors.pad_to", "solver": "alignment"}


class _PresetFactory:
    """Returns the metric of a preset, given its options.

    The metric is built on first use, which imports its parts: no preset waits for those of others.
    Specs read the options of a metric, their types and their defaults from its signature.
    """

    def __init__(self, preset: Preset) -> None:
        self._preset = preset
        self.__name__ = self.__qualname__ = preset.name
        self.__doc__ = inspect.cleandoc(preset.about)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        metric = self._metric
        for option, value in self.__signature__.bind(*args, **kwargs).arguments.items():
            setting = _idf_weighting(value) if option == "idf" else value
            metric = _replace_setting(metric, self._paths[option], setting)
        return metric

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        paths = self._paths.items()
        return inspect.Signature([_parameter(self._metric, o, path) for o, path in paths])

    @functools.cached_property
    def _metric(self) -> Any:
        return build(self._preset.metric, "metric")

    @functools.cached_property
    def _paths(self) -> Mapping[str, list[str]]:
        """The path of the setting that each option sets, from the metric down."""
        return {option: self._path(option) for option in self._preset.options.split()}

    def _path(self, option: str) -> list[str]:
        path = self._preset.paths.get(option) or _RENAMED.get(option)
        if path is None:
            factory: Any = type(self._metric)
            own = option in setting_types(factory)
            path = option if own else f"{_OWNERS[option]}.{option}"
        return path.split(".")


def _idf_weighting(idf: bool | str) -> Weighting:
    """The weighting for a metric's `idf` option: counted, from a table, or uniform."""
    if isinstance(idf, str):
        return Idf(idf)
    return Idf() if idf else Uniform()


def _parameter(metric: Any, option: str, path: list[str]) -> inspect.Parameter:
    owner = functools.reduce(getattr, path[:-1], metric)
    factory: Any = type(owner)
    default, hint = getattr(owner, path[-1]), setting_types(factory)[path[-1]]
    if option == "idf":
        default = (default.table or True) if isinstance(default, Idf) else False
        hint = bool | str
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(option, kind, default=default, annotation=hint)


def _replace_setting(part: Any, path: list[str], value: Any) -> Any:
    if len(path) > 1:
        value = _replace_setting(getattr(part, path[0]), path[1:], value)
    return dataclasses.replace(part, **{path[0]: value})


def register_preset(preset: Preset) -> None:
    """Register a function that takes the preset's options and returns its metric."""
    register("metric", preset.name)(_PresetFactory(preset))


for _preset in PRESETS:
    register_preset(_preset)
