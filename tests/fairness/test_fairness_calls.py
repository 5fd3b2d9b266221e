"""Functions of the fairness modules answer a wrong argument with an InputError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenmatch.data import fairness_sets as sets
from evenmatch.errors import InputError
from evenmatch.fairness import audit, bias, counterfactuals, explain, mentions, paradigms, tagging
from evenmatch.scoring.aligned import align_texts
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.reducers import Prf
from evenmatch.stats.paired import Resampling
from evenmatch.types import Pair, Run

PAIR = sets.make_fairness_pair("he left", "one left", "she left", "one left")
SCORES = bias.AttributeScores("x", "m", np.ones(2), np.ones(2))
TESTING = Resampling(0.95, 9, 9, 0)
ALIGNED = align_texts("a b", "a c", as_metric("align(vectors=hashed)"))
TERMS = sets.builtin_terms("age")

# For each function the arguments of a plausible call. Each is replaced by wrong values in turn.
CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (sets.read_fair_pairs, {"data": "", "attributes": ["gender"]}),
    (sets.make_fairness_pair, {"cand_a": "a", "ref_a": "b", "cand_b": "c", "ref_b": "d"}),
    (sets.template_pairs, {"attribute": "age"}),
    (sets.builtin_terms, {"attribute": "age"}),
    (sets.read_terms, {"data": "winobias", "attribute": "gender"}),
    (counterfactuals.counterfactuals, {"sentences": ["He left."], "attribute": "gender"}),
    (counterfactuals.swap_groups, {"text": "He left.", "terms": TERMS, "parse": None}),
    (counterfactuals.neutralise, {"text": "He left.", "terms": TERMS, "parse": None}),
    (counterfactuals.tag_texts, {"texts": ["He left."], "parser": None}),
    (counterfactuals.gendered_cases, {"pairs": [Pair("He left.", ("He left.",))]}),
    (counterfactuals.mentioned_groups, {"text": "He left.", "terms": TERMS}),
    (counterfactuals.wrong_gender_penalties, {"metrics": [], "cases": [], "run": Run()}),
    (counterfactuals.match_case, {"word": "a", "like": "B"}),
    (counterfactuals.choose_article, {"word": "a"}),
    (mentions.make_lexicon, {"terms": TERMS}),
    (mentions.make_lexicon(TERMS).find, {"text": "He left.", "parse": None}),
    (mentions.make_lexicon(TERMS).may_occur, {"text": "He left."}),
    (mentions.make_lexicon(TERMS).direction, {"first": "a", "second": "b"}),
    (tagging.tokenize, {"text": "He left.", "parse": None}),
    (tagging.rule_tags, {"words": ["He", "left"]}),
    (bias.measure_bias, {"scores": SCORES, "testing": TESTING}),
    (audit.audit, {"metric": "chrf", "pairs": "", "attributes": ["gender"], "worst": 1}),
    (audit.pair_directions, {"attribute": "gender", "pairs": [PAIR]}),
    (explain.explain_pair, {"pair": PAIR, "metric": "align(vectors=hashed)", "most": 1}),
    (explain.explain_alignments, {"first": ALIGNED, "second": ALIGNED, "scoring": Prf()}),
    (explain.unit_shares, {"aligned": ALIGNED, "scoring": Prf()}),
    (explain.value_function, {"scoring": Prf()}),
    (paradigms.metric_kind, {"signature": "chrf"}),
    (paradigms.published_metric_kind, {"name": "chrF"}),
    (paradigms.group_biases, {"biases": [], "kinds": {}}),
    (paradigms.paradigm_table, {"groups": []}),
]
WRONG = [7, b"text", [7], [None], {"a": 1}, object()]
NONE_IS_RIGHT = {"parse", "parser"}


@pytest.mark.parametrize(
    ("function", "arguments"), CALLS, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_wrong_argument_is_refused(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    for name, argument in arguments.items():
        for wrong in (*WRONG, *((None,) if name not in NONE_IS_RIGHT else ())):
            right = wrong == 7 and isinstance(argument, int)
            if not right:
                with pytest.raises(InputError):
                    function(**arguments | {name: wrong})
