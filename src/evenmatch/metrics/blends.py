"""Blends that come with evenmatch: weighted sums of metrics, fitted to human ratings.

Parts and weights are files in the folder `shipped`, written by `evenmatch calibrate`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError
from evenmatch.files import DIGEST_PREFIX, file_digest
from evenmatch.registry import CallContext, register, resolve
from evenmatch.scoring.engine import EngineMetric, ReadyMetric
from evenmatch.scoring.ensembles import Blend
from evenmatch.scoring.metric import read_metric
from evenmatch.version import __version__

_BLEND_FILE = Path(str(files("evenmatch.metrics") / "shipped" / "wmt_blend" / "metric.json"))


@register("metric", "wmt_blend")
@dataclass(frozen=True)
class WmtBlend(EngineMetric):
    """Blend of eleven alignment and n-gram metrics, fitted to human ratings of WMT15 and WMT16.

    Scores are on the scale of the standardised ratings: 0 is an average output, and 1 is one
    standard deviation better. `content` is the hash of the file with the parts and their weights,
    which come with evenmatch; signatures name it. `em.build("wmt_blend").meant` shows them.
    """

    content: str = ""

    def __post_init__(self) -> None:
        found = file_digest(_BLEND_FILE)
        if self.content and not found.startswith(self.content.removeprefix(DIGEST_PREFIX)):
            raise DataError(
                f"the wmt_blend of evenmatch {__version__} has the content {DIGEST_PREFIX}"
                f"{found[:12]}, not {self.content}; install the evenmatch that the signature names"
            )

    @property
    def meant(self) -> Blend:
        """The blend: parts and weights."""
        metric: Blend = _read_blend()
        return metric

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the parts."""
        return self.meant.open(context)

    def resolve(self, context: CallContext) -> tuple[WmtBlend, tuple[str, ...]]:
        """Return this metric with its content hash, and the facts of its parts."""
        _, facts = resolve(self.meant, context)
        return WmtBlend(f"{DIGEST_PREFIX}{file_digest(_BLEND_FILE)[:12]}"), facts

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible sum, given the bounds of the parts."""
        return self.meant.bounds


@register("metric", "mqm_blend")
def mqm_blend() -> Blend:
    """Blend of `wmt_blend`, `bertscore` and a metric fitted to WMT15, WMT16 and MQM of WMT20.

    Their shares in the variance of the scores are 2 : 1 : 2. Scores are on the scale of the
    standardised ratings, as those of `wmt_blend` are.
    """
    return _read_shipped("mqm_blend")


@register("metric", "fluent_blend")
def fluent_blend() -> Blend:
    """Blend of `mqm_blend` and the fluency of the candidate, compared with that of the reference.

    Fluency is the log-probability of a text by `smollm2`, which reads it without the other text.
    It agrees with raters better than `mqm_blend` and takes about thirty times as long.
    """
    return _read_shipped("fluent_blend")


def _read_shipped(name: str) -> Blend:
    metric: Blend = read_metric(str(_BLEND_FILE.parents[1] / name))
    return metric


@functools.cache
def _read_blend() -> Any:
    return read_metric(str(_BLEND_FILE))
