"""Options that several commands share.

How results are printed: as text, JSON, TSV or LaTeX.

Groups of options that a command takes as one value.

Options of commands whose pairs can be shared out to workers.

What the commands that make a metric have in common: options, and how the result is told.

What commands that train for hours take, so that they can do it in pieces.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from inspect import Parameter
from typing import Annotated, Any, Protocol, TypeAlias

import typer

from evenmatch.cli.console import (
    as_json,
    print_message,
    print_output,
    print_text_or_json,
    show_progress,
)
from evenmatch.data.cards import MetricCard
from evenmatch.data.tables import TextTable, records_to_tsv, table_to_latex
from evenmatch.distributed.messages import Runner
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.ray_cluster import Ray
from evenmatch.distributed.run import RETRIES, SHARD_ROWS
from evenmatch.distributed.session import WorkerSession, worker_session
from evenmatch.types import Run

METRIC_HELP = "A metric's name or spec; several share one pass over the texts."


def metric_option(said: str, usual: bool | str = True) -> Any:
    """The option -m, which names a metric or several; `usual` is what help shows as default."""
    return typer.Option("--metric", "-m", metavar="METRIC", help=said, show_default=usual)


def resolve_metrics(given: Sequence[str] | None, published: bool) -> list[str]:
    """The metrics to run, each once: without any, bertscore where no published scores are taken."""
    return list(dict.fromkeys(given or ([] if published else ["bertscore"])))


def count_option(said: str, least: int = 1) -> Any:
    """An option that is a whole number of at least so much."""
    return typer.Option(min=least, metavar="N", help=said)


def optional_option(metavar: str, said: str) -> Any:
    """An option that is nothing unless it is given."""
    return typer.Option(metavar=metavar, help=said, show_default=False)


def repeatable_option(
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


MetricsOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help=METRIC_HELP,
        default_factory=lambda: ["bertscore"],
        show_default="bertscore",
    ),
]


SourcesOption: TypeAlias = Annotated[
    str, optional_option("FILE", "What the candidates were made from.")
]


ModelMetricOption: TypeAlias = Annotated[
    str, metric_option("An alignment metric over a model, such as bertscore(model='FOLDER').")
]


JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]


ConfidenceOption: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="How sure the intervals are to be.")
]


SeedOption: TypeAlias = Annotated[int, count_option("Which random numbers.", least=0)]


ProgressOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Tell progress on standard error; without either, only where that is a terminal.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ResamplingOptions:
    """How intervals and tests of differences draw scores at random, as options."""

    confidence: ConfidenceOption = 0.95
    resamples: Annotated[int, count_option("How often scores are drawn again, for intervals.")] = (
        1000
    )
    trials: Annotated[int, count_option("How often scores are swapped at random, for tests.")] = (
        10_000
    )
    seed: SeedOption = 0


@dataclass(frozen=True)
class RunOptions:
    """How a command carries out what it is asked: the options every run of metrics has."""

    device: Annotated[
        str, typer.Option(metavar="NAME", help="Where models run, as torch names it.")
    ] = "cpu"
    threads: Annotated[
        int, count_option("Threads a model may use; 0 leaves that to torch.", least=0)
    ] = 0
    batch_tokens: Annotated[int, count_option("The most tokens in one forward pass.")] = (
        Run().batch_tokens
    )
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep vectors on disk for the next run.")
    ] = False
    exact_cache: Annotated[
        bool,
        typer.Option(
            "--exact-cache", help="The same with every bit, in twice the room.", show_default=False
        ),
    ] = False
    progress: ProgressOption = None

    @contextmanager
    def settings(self, word: str = "scored") -> Iterator[dict[str, Any]]:
        """The run settings of the library; progress is told meanwhile, in pairs `word`."""
        with show_progress(self.progress, word) as tell_progress:
            yield {
                "device": self.device,
                "threads": self.threads,
                "batch_tokens": self.batch_tokens,
                "cache": "exact" if self.exact_cache else self.cache,
                "progress": tell_progress,
            }


class OutputFormat(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    tsv = "tsv"
    latex = "latex"


class HasNotes(Protocol):
    """A result that says what it rests on; as text it reads whole."""

    def notes(self) -> Sequence[str]:
        """What the numbers rest on."""


@dataclass(frozen=True)
class OutputOptions:
    """How a command prints its result, as options."""

    style: Annotated[
        OutputFormat,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"How to print the result: {', '.join(OutputFormat)}.",
        ),
    ] = OutputFormat.text
    json: JsonOption = False

    @property
    def format(self) -> OutputFormat:
        """The format that is asked for; --json goes before --format."""
        return OutputFormat.json if self.json else self.style

    def print_result(
        self,
        found: HasNotes,
        *,
        document: Mapping[str, Any],
        records: Sequence[Mapping[str, object]],
        tables: Sequence[TextTable],
    ) -> None:
        """Print a result as text, its document as JSON, its records as TSV or its tables as LaTeX.

        LaTeX has the notes of the result before the tables, as comments.
        """
        if self.format is OutputFormat.json:
            print_output(as_json(document))
        elif self.format is OutputFormat.tsv:
            print_output(records_to_tsv(records))
        elif self.format is OutputFormat.latex:
            print_output(
                "\n".join([*(f"% {note}" for note in found.notes()), *map(table_to_latex, tables)])
            )
        else:
            print_output(str(found))


Command: TypeAlias = Callable[..., None]


def expand_option_groups(**defaults: object) -> Callable[[Command], Command]:
    """A command each group of which is spelt out as its options.

    A group is a parameter whose type is a dataclass of options. The command line is read off a
    function's signature; so the wrapper shows the options there, in the place of their group, and
    hands them on as one value. `defaults` replace the groups' own.
    """

    def take(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        groups = {name: _group_options(p) for name, p in own.items() if is_dataclass(p.annotation)}

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, options in groups.items():
                given[name] = own[name].annotation(**{o: given.pop(o) for o in options})
            command(**given)

        options = _expand_parameters(own, groups)
        for name, value in defaults.items():
            options[name] = options[name].replace(default=value)
        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in options.values()]
        with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in shown}
        return with_options

    return take


def _group_options(group: Parameter) -> Mapping[str, Parameter]:
    return inspect.signature(group.annotation, eval_str=True).parameters


def _expand_parameters(
    own: Mapping[str, Parameter], groups: Mapping[str, Mapping[str, Parameter]]
) -> dict[str, Parameter]:
    return {o: p for name in own for o, p in groups.get(name, {name: own[name]}).items()}


PartsOption: TypeAlias = Annotated[
    str,
    optional_option(
        "DIR", "With --on, keep finished shards here; the next run does only what is missing."
    ),
]


class WorkerBackend(StrEnum):
    """What workers run on."""

    processes = "processes"
    ray = "ray"


@dataclass(frozen=True)
class WorkerOptions:
    """How many pairs are shared out: the options beside those every run of metrics has."""

    on: Annotated[
        WorkerBackend | None,
        optional_option(
            "WHERE", "Share the pairs out to workers: processes of this machine, or ray."
        ),
    ] = None
    workers: Annotated[int, count_option("How many workers; 0 is one for each core.", least=0)] = 0
    shard_rows: Annotated[int, count_option("Rows that a worker is given at a time.")] = SHARD_ROWS
    retries: Annotated[
        int, count_option("How often a shard that fails is tried again.", least=0)
    ] = RETRIES
    max_failures: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Stop when more shards than that have failed.",
            show_default="never",
        ),
    ] = None
    ray_address: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The Ray cluster, as ray.init takes it: HOST:PORT, auto, or ray://HOST:PORT.",
            show_default="one started here for the run",
        ),
    ] = ""
    ray_working_dir: Annotated[
        str,
        optional_option(
            "DIR", "A folder to send to every Ray node; relative paths in specs begin there."
        ),
    ] = ""
    ray_models: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where embedded models lie on the Ray nodes.",
            show_default="as each node's EVENMATCH_MODELS says",
        ),
    ] = ""

    def check(self, *others: object) -> None:
        """Refuse, as wrong usage, what goes only with --on, `others` among it, or with --on ray."""
        plain = WorkerOptions(shard_rows=self.shard_rows, retries=self.retries)
        if self.on is None and (any(others) or self != plain):
            raise typer.BadParameter("--workers, --resume, --parts and the like need --on")
        if self.on is not WorkerBackend.ray and (
            self.ray_address or self.ray_working_dir or self.ray_models
        ):
            raise typer.BadParameter("--ray-address and the like need --on ray")

    def runner(self, threads: int) -> Runner:
        """What opens the workers."""
        if self.on is WorkerBackend.ray:
            return Ray(
                self.workers, threads, self.ray_address, self.ray_working_dir, self.ray_models
            )
        return Processes(self.workers, threads)

    @contextmanager
    def settings(self, running: RunOptions, parts: str) -> Iterator[dict[str, Any]]:
        """The run settings of the library, workers among them where they are asked for."""
        self.check(parts)
        with running.settings() as settings, self._worker_session(running.threads, parts) as on:
            yield {**settings, "on": on}

    @contextmanager
    def _worker_session(self, threads: int, parts: str) -> Iterator[WorkerSession | None]:
        if self.on is None:
            yield None
            return
        with worker_session(
            self.runner(threads),
            parts=parts,
            shard_rows=self.shard_rows,
            retries=self.retries,
            max_failures=self.max_failures,
        ) as sharing:
            yield sharing


RatingsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Rated outputs: a data set's name, a folder, or one JSONL, TSV or Parquet table with "
        "system, segment, candidate, references, rating.",
    ),
]


MetricFolderOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="A new folder for the metric, its card included."
    ),
]


EpochsOption: TypeAlias = Annotated[int, count_option("How often each pair is seen.")]


# What training does with a pair, and judging after it.
PROGRESS_WORD = "seen"


def print_metric_card(made: MetricCard, json: bool) -> None:
    """Print what was made, for people or for programs, and how to name it as a metric."""
    print_text_or_json(made, made.document, json=json)
    print_message(f"wrote {made.folder}; name it as a metric: -m {made.metric}")


MinutesOption: TypeAlias = Annotated[
    int, count_option("Pause after so long, 0 for never; then run again.", least=0)
]


@dataclass(frozen=True)
class TrainingOptions:
    """How long training goes on at a time, and with how many threads, as options."""

    minutes: MinutesOption = 40
    threads: Annotated[int, count_option("Threads to train with.")] = 1


def time_limit(minutes: float) -> Callable[[], bool]:
    """Whether so many minutes have passed from now on; 0 never do."""
    start = time.monotonic()
    return lambda: bool(minutes) and time.monotonic() - start > 60 * minutes
