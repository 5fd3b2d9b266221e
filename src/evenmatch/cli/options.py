"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from evenmatch.cli.progress import telling_progress
from evenmatch.types import Run

ANY_METRIC = "A metric's name or spec; several share one pass over the texts."


def metric_option(said: str, usual: bool | str = True) -> Any:
    """The option -m, which names a metric or several; `usual` is what help shows as default."""
    return typer.Option("--metric", "-m", metavar="METRIC", help=said, show_default=usual)


def metrics_beside(given: Sequence[str] | None, published: bool) -> list[str]:
    """The metrics to run, each once: without any, bertscore where no published scores are taken."""
    return list(dict.fromkeys(given or ([] if published else ["bertscore"])))


def count(said: str, least: int = 1) -> Any:
    """An option that is a whole number of at least so much."""
    return typer.Option(min=least, metavar="N", help=said)


def optional(metavar: str, said: str) -> Any:
    """An option that is nothing unless it is given."""
    return typer.Option(metavar=metavar, help=said, show_default=False)


def several(
    metavar: str, said: str, usual: bool | str = True, *names: str, least: int | None = None
) -> Any:
    """An option that may be given several times; `usual` is what help shows as default."""
    return typer.Option(
        *names,
        min=least,
        metavar=metavar,
        help=f"{said}; may be given several times.",
        show_default=usual,
    )


Metrics: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help=ANY_METRIC,
        default_factory=lambda: ["bertscore"],
        show_default="bertscore",
    ),
]
Sources: TypeAlias = Annotated[str, optional("FILE", "What the candidates were made from.")]
ModelMetric: TypeAlias = Annotated[
    str, metric_option("An alignment metric over a model, such as bertscore(model='FOLDER').")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
Confidence: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="How sure the intervals are to be.")
]
Seed: TypeAlias = Annotated[int, count("Which random numbers.", least=0)]
ShowProgress: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Tell progress on standard error; without either, only where that is a terminal.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Draws:
    """How intervals and tests of differences draw scores at random, as options."""

    confidence: Confidence = 0.95
    resamples: Annotated[int, count("How often scores are drawn again, for intervals.")] = 1000
    trials: Annotated[int, count("How often scores are swapped at random, for tests.")] = 10_000
    seed: Seed = 0


@dataclass(frozen=True)
class Running:
    """How a command carries out what it is asked: the options every run of metrics has."""

    device: Annotated[
        str, typer.Option(metavar="NAME", help="Where models run, as torch names it.")
    ] = "cpu"
    threads: Annotated[int, count("Threads a model may use; 0 leaves that to torch.", least=0)] = 0
    batch_tokens: Annotated[int, count("The most tokens in one forward pass.")] = Run().batch_tokens
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep vectors on disk for the next run.")
    ] = False
    exact_cache: Annotated[
        bool,
        typer.Option(
            "--exact-cache", help="The same with every bit, in twice the room.", show_default=False
        ),
    ] = False
    progress: ShowProgress = None

    @contextmanager
    def settings(self, word: str = "scored") -> Iterator[dict[str, Any]]:
        """The run settings of the library; progress is told meanwhile, in pairs `word`."""
        with telling_progress(self.progress, word) as tell_progress:
            yield {
                "device": self.device,
                "threads": self.threads,
                "batch_tokens": self.batch_tokens,
                "cache": "exact" if self.exact_cache else self.cache,
                "progress": tell_progress,
            }
