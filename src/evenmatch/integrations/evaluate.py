"""Any metric of evenmatch as a module of Hugging Face's evaluate.

evaluate.load(evenmatch.integrations.evaluate.__file__).compute(
    predictions=[...], references=[...], metric="f_disc"
)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenmatch.api import score
from evenmatch.errors import MissingExtraError

try:
    import datasets
    import evaluate
except ImportError:
    raise MissingExtraError(
        "this needs evaluate; install it with: pip install 'evenmatch[evaluate]'"
    ) from None


_DESCRIPTION = "Scores generated text by how its parts align with a reference."


_INPUTS = """
Args:
    predictions: candidates, one string each.
    references: one string, or one list of strings, for each candidate.
    metric: a name or spec, such as "f_disc" or "bertscore(model='roberta-large')".
Returns:
    mean: the mean score; corpus: the corpus score where the metric defines one;
    value, precision, recall: one number per candidate, as far as the metric has them;
    signature: the recipe.
"""


class EvenmatchEvaluateMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """Takes `predictions`, `references` and `metric`; gives the mean and every pair's scores."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
                datasets.Features({"predictions": text, "references": text}),
            ],
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str] | Sequence[Sequence[str]],
        metric: str = "bertscore",
        **run: Any,
    ) -> dict[str, Any]:
        found = score(predictions, references, metric, **run)
        each = {
            name: [getattr(segment, name) for segment in found.segments]
            for name in ("value", "precision", "recall")
        }
        known = {name: numbers for name, numbers in each.items() if None not in numbers}
        corpus = {} if found.corpus is None else {"corpus": found.corpus}
        return {"mean": found.mean, **corpus, **known, "signature": found.signature}
