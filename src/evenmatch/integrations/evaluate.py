"""A module for Hugging Face's evaluate that computes any evenmatch metric.

evaluate.load(evenmatch.integrations.evaluate.__file__).compute(
    predictions=[...], references=[...], metric="f_disc"
)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenmatch.api import score
from evenmatch.errors import InputError, needs_extra
from evenmatch.integrations.frames import score_columns

with needs_extra("this needs evaluate; install it with: pip install 'evenmatch[evaluate]'"):
    import datasets
    import evaluate


_DESCRIPTION = "Scores generated text by aligning its parts with a reference."
_INPUTS = """
Args:
    predictions: candidates, one string each.
    references: one string, or one list of strings, for each candidate.
    metric: a name or spec, such as "f_disc" or "bertscore(model='roberta-large')".
Returns:
    mean: the mean score; corpus: the corpus score where the metric defines one;
    value, precision, recall: one number per candidate; the last two where the metric has them;
    signature: the metric's spec with versions and content hashes.
"""


class EvenmatchEvaluateMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """Computes the mean score and the scores of every pair, by the metric named in `metric`."""

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
        if not isinstance(metric, str):
            raise InputError(f"metric takes one name or spec, got {metric!r}; load one for each")
        found = score(predictions, references, metric, **run)
        corpus = {} if found.corpus is None else {"corpus": found.corpus}
        columns = score_columns(found)
        return {"mean": found.mean, **corpus, **columns, "signature": found.signature}
