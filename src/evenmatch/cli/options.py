"""Options shared by several commands.

Single options are type aliases (`MetricsOption`, `SeedOption`); options that belong together are
dataclasses (`RunOptions`, `OutputOptions`, `WorkerOptions`). A command takes such a dataclass as
one parameter, and `expand_option_groups` turns it into separate command-line options.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, Literal, Protocol, TypeAlias, get_args

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

METRIC_HELP = (
    "Metric name or spec; may be given several times. Metrics that use the same model share one "
    "pass over the texts."
)

# Progress counts training pairs and then the pairs of the evaluation, so "scored" would be wrong.
PROGRESS_WORD = "processed"


def option(
    metavar: str,
    help_text: str,
    *names: str,
    default: bool | str = True,
    least: float | None = None,
) -> Any:
    """Return an option with a value; `default` is the default shown in help, or whether it is."""
    return typer.Option(*names, metavar=metavar, help=help_text, show_default=default, min=least)


def argument(metavar: str, help_text: str, default: bool | str = True) -> Any:
    """Return a positional argument; `default` as for `option`."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=default)


def flag(name: str, help_text: str) -> Any:
    """Return an option without a value: '--name' or '--name/--no-name'."""
    return typer.Option(name, help=help_text)


def metric_option(help_text: str, default: bool | str = True) -> Any:
    """Return the option -m for one or several metrics."""
    return option("METRIC", help_text, "--metric", "-m", default=default)


def count_option(help_text: str, least: int = 1) -> Any:
    """Return an integer option with the minimum `least`."""
    return option("N", help_text, least=least)


def optional_option(metavar: str, help_text: str, *names: str) -> Any:
    """Return an option without a default in its help text."""
    return option(metavar, help_text, *names, default=False)


def repeatable_option(
    metavar: str,
    help_text: str,
    *names: str,
    default: bool | str = True,
    least: float | None = None,
) -> Any:
    """Return an option that may be given several times."""
    repeated = f"{help_text}; may be given several times."
    return option(metavar, repeated, *names, default=default, least=least)


def resolve_metrics(given: Sequence[str] | None, published: bool) -> list[str]:
    """Return the distinct metrics to run; by default bertscore, or none if `published`."""
    return list(dict.fromkeys(given or ([] if published else ["bertscore"])))


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
    str,
    optional_option("FILE", "Source texts (the inputs of the generation system), one per line."),
]

ModelMetricOption: TypeAlias = Annotated[
    str, metric_option("Alignment metric that uses a model, for example bertscore(model='FOLDER').")
]

JsonOption: TypeAlias = Annotated[bool, flag("--json", "Print the result as one JSON document.")]

ConfidenceOption: TypeAlias = Annotated[
    float, option("LEVEL", "Confidence level of the intervals, between 0 and 1.")
]

SeedOption: TypeAlias = Annotated[int, count_option("Random seed.", least=0)]

ProgressOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on standard error. By default only if standard error is a terminal.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ResamplingOptions:
    """Options of confidence intervals and significance tests."""

    confidence: ConfidenceOption = 0.95
    resamples: Annotated[
        int, count_option("Number of bootstrap resamples, for intervals and bootstrap tests.")
    ] = 1000
    trials: Annotated[
        int, count_option("Number of random permutations, for permutation tests.")
    ] = 10_000
    seed: SeedOption = 0


@dataclass(frozen=True)
class RunOptions:
    """Options of every command that runs metrics: device, batch size, cache, progress."""

    device: Annotated[
        str, option("NAME", "PyTorch device to run models on, for example cpu or cuda:0.")
    ] = "cpu"
    threads: Annotated[
        int, count_option("Number of CPU threads; 0 uses PyTorch's default.", least=0)
    ] = 0
    batch_tokens: Annotated[int, count_option("Maximum number of tokens in one forward pass.")] = (
        Run().batch_tokens
    )
    cache: Annotated[
        bool,
        flag(
            "--cache/--no-cache",
            "Store token vectors on disk and reuse them in later runs. They are rounded to 16 "
            "bits, which signatures record as 'vectors compact'.",
        ),
    ] = False
    exact_cache: Annotated[
        bool,
        typer.Option(
            "--exact-cache",
            help="Store vectors in full precision (twice the disk space); implies --cache.",
            show_default=False,
        ),
    ] = False
    progress: ProgressOption = None

    @contextmanager
    def settings(self, word: str = "scored") -> Iterator[dict[str, Any]]:
        """Yield the run settings of the library; progress is shown meanwhile as 'pairs `word`'."""
        with show_progress(self.progress, word) as progress:
            yield {
                "device": self.device,
                "threads": self.threads,
                "batch_tokens": self.batch_tokens,
                "cache": "exact" if self.exact_cache else self.cache,
                "progress": progress,
            }


OutputFormat: TypeAlias = Literal["text", "json", "tsv", "latex"]


class HasNotes(Protocol):
    """A result whose `notes` describe settings and signatures; `str` gives the whole text."""

    def notes(self) -> Sequence[str]:
        """Return the settings and signatures behind the numbers, one per line."""


@dataclass(frozen=True)
class OutputOptions:
    """Options that select the output format."""

    style: Annotated[
        OutputFormat,
        option("FORMAT", f"Output format: {', '.join(get_args(OutputFormat))}.", "--format", "-f"),
    ] = "text"
    json: JsonOption = False

    @property
    def format(self) -> OutputFormat:
        """The selected format; --json overrides --format."""
        return "json" if self.json else self.style

    def print_result(
        self,
        found: HasNotes,
        *,
        document: Mapping[str, Any],
        records: Sequence[Mapping[str, object]],
        tables: Sequence[TextTable],
    ) -> None:
        """Print `found` as text, `document` as JSON, `records` as TSV or `tables` as LaTeX.

        LaTeX output begins with the notes of the result as comments.
        """
        if self.format == "json":
            print_output(as_json(document))
        elif self.format == "tsv":
            print_output(records_to_tsv(records))
        elif self.format == "latex":
            print_output(
                "\n".join([*(f"% {note}" for note in found.notes()), *map(table_to_latex, tables)])
            )
        else:
            print_output(str(found))


Command: TypeAlias = Callable[..., None]


def expand_option_groups(**defaults: object) -> Callable[[Command], Command]:
    """Decorate a command so that each dataclass parameter becomes separate options.

    Typer reads the options from the signature of a function. The wrapper's signature lists the
    fields of each dataclass in place of the parameter; when called, it builds the dataclasses and
    passes them to the command. `defaults` override the defaults of the fields.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        groups = {name: _group_options(p) for name, p in own.items() if is_dataclass(p.annotation)}

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, options in groups.items():
                given[name] = own[name].annotation(**{o: given.pop(o) for o in options})
            command(**given)

        options = {o: p for name in own for o, p in groups.get(name, {name: own[name]}).items()}
        for name, value in defaults.items():
            options[name] = options[name].replace(default=value)
        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in options.values()]
        with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in shown}
        return with_options

    return decorate


def _group_options(group: Parameter) -> Mapping[str, Parameter]:
    return inspect.signature(group.annotation, eval_str=True).parameters


PartsOption: TypeAlias = Annotated[
    str,
    optional_option(
        "DIR",
        "With --on: store finished shards here, so that the next run computes only missing ones.",
    ),
]


@dataclass(frozen=True)
class WorkerOptions:
    """Options of commands that can distribute their pairs over workers."""

    on: Annotated[
        Literal["processes", "ray"] | None,
        optional_option(
            "WHERE", "Distribute the pairs over workers: processes (on this machine) or ray."
        ),
    ] = None
    workers: Annotated[
        int, count_option("Number of workers; 0 starts one per CPU core.", least=0)
    ] = 0
    shard_rows: Annotated[
        int, count_option("Number of rows per shard, the unit of work given to a worker.")
    ] = SHARD_ROWS
    retries: Annotated[int, count_option("Number of retries of a failed shard.", least=0)] = RETRIES
    max_failures: Annotated[
        int | None,
        option("N", "Stop when more than N shards have failed.", default="no limit", least=0),
    ] = None
    ray_address: Annotated[
        str,
        option(
            "ADDRESS",
            "Address of the Ray cluster, as in ray.init: HOST:PORT, auto, or ray://HOST:PORT.",
            default="start a local cluster for this run",
        ),
    ] = ""
    ray_working_dir: Annotated[
        str,
        optional_option(
            "DIR", "Folder to copy to every Ray node; relative paths in specs are resolved there."
        ),
    ] = ""
    ray_models: Annotated[
        str,
        option(
            "DIR",
            "Folder of the embedded models on the Ray nodes.",
            default="EVENMATCH_MODELS of each node",
        ),
    ] = ""

    def check(self, *others: object) -> None:
        """Reject options, `others` included, that need --on or --on ray if it is not given."""
        plain = WorkerOptions(shard_rows=self.shard_rows, retries=self.retries)
        if self.on is None and (any(others) or self != plain):
            raise typer.BadParameter(
                "--workers, --resume, --parts and other worker options need --on"
            )
        if self.on != "ray" and (self.ray_address or self.ray_working_dir or self.ray_models):
            raise typer.BadParameter(
                "--ray-address, --ray-working-dir and --ray-models need --on ray"
            )

    def runner(self, threads: int) -> Runner:
        """Return the runner that starts the workers."""
        if self.on == "ray":
            return Ray(
                self.workers, threads, self.ray_address, self.ray_working_dir, self.ray_models
            )
        return Processes(self.workers, threads)

    @contextmanager
    def settings(self, running: RunOptions, parts: str) -> Iterator[dict[str, Any]]:
        """Yield the run settings of the library, with a worker session if --on is given."""
        self.check(parts)
        session: AbstractContextManager[WorkerSession | None] = nullcontext()
        if self.on is not None:
            session = worker_session(
                self.runner(running.threads),
                parts=parts,
                shard_rows=self.shard_rows,
                retries=self.retries,
                max_failures=self.max_failures,
            )
        with running.settings() as settings, session as on:
            yield {**settings, "on": on}


RatingsArgument: TypeAlias = Annotated[
    str,
    argument(
        "DATA",
        "Human ratings: the name of a public data set (see: evenmatch data list), a folder in "
        "WMT layout, or a JSONL, TSV or Parquet file with the columns system, segment, candidate, "
        "references, rating.",
    ),
]

MetricFolderOption: TypeAlias = Annotated[
    str, option("FOLDER", "New folder for the metric and its card (README).", "--out", "-o")
]

EpochsOption: TypeAlias = Annotated[int, count_option("Number of passes over the training pairs.")]


def print_metric_card(made: MetricCard, json: bool) -> None:
    """Print the card of a new metric as text or JSON, and how to use the metric."""
    print_text_or_json(made, made.document, json=json)
    print_message(f"wrote {made.folder}; use it as a metric: -m {made.metric}")


MinutesOption: TypeAlias = Annotated[
    int,
    count_option(
        "Stop after N minutes (0: no limit); run the same command again to continue.", least=0
    ),
]


@dataclass(frozen=True)
class TrainingOptions:
    """Options of long training runs that can be stopped and continued."""

    minutes: MinutesOption = 40
    threads: Annotated[int, count_option("Number of CPU threads.")] = 1


def time_limit(minutes: float) -> Callable[[], bool]:
    """Return a function that says whether `minutes` have passed since now; 0 means no limit."""
    start = time.monotonic()
    return lambda: bool(minutes) and time.monotonic() - start > 60 * minutes
