"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from inspect import Parameter
from typing import Annotated, Any, TypeAlias

import typer

from evenmatch.cli.progress import telling_progress


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    tsv = "tsv"
    latex = "latex"


Metrics: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help="A metric's name or spec; several share one pass over the texts.",
        default_factory=lambda: ["bertscore"],
        show_default="bertscore",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
PrintFormat: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"How to print the result: {', '.join(Format)}.",
    ),
]
Confidence: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="How sure the intervals are to be.")
]
Resamples: TypeAlias = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="How often scores are drawn again, for intervals."),
]
Trials: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="How often scores are swapped at random, for tests.")
]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, metavar="N", help="Which random numbers.")]


@dataclass(frozen=True)
class Running:
    """How a command carries out what it is asked: the options every run of metrics has."""

    device: Annotated[
        str, typer.Option(metavar="NAME", help="Where models run, as torch names it.")
    ] = "cpu"
    threads: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Threads a model may use; 0 leaves that to torch."),
    ] = 0
    batch_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="The most tokens in one forward pass.")
    ] = 1024
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep vectors on disk for the next run.")
    ] = False
    exact_cache: Annotated[
        bool,
        typer.Option(
            "--exact-cache", help="The same with every bit, in twice the room.", show_default=False
        ),
    ] = False
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Tell progress on standard error; without either, only where that is a terminal.",
            show_default=False,
        ),
    ] = None

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


Command: TypeAlias = Callable[..., None]


def takes_run_options(*, cache: bool = False) -> Callable[[Command], Command]:
    """A command whose `running` parameter is spelt out as the options of `Running`."""
    return spells_out("running", Running, cache=cache)


def spells_out(
    parameter: str, group: Callable[..., object], **defaults: object
) -> Callable[[Command], Command]:
    """A command one parameter of which is spelt out as the options of a group.

    The command line is read off a function's signature; so the wrapper shows the options there,
    after the command's own, and hands them on as one value. `defaults` replace the group's own.
    """
    options = dict(inspect.signature(group, eval_str=True).parameters)
    for name, value in defaults.items():
        options[name] = options[name].replace(default=value)

    def take(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            grouped = group(**{name: given.pop(name) for name in options})
            command(**given, **{parameter: grouped})

        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own[parameter]
        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in (own | options).values()]
        with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in shown}
        return with_options

    return take
