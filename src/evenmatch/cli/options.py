"""Options shared by several commands.

An option is the default of a parameter: `seed: int = SEED`, `pairs: int = count(300, ...)`.
Options that belong together are dataclasses (`RunOptions`, `OutputOptions`, `WorkerOptions`). A
command takes such a dataclass as one parameter, and `expand_option_groups` turns it into separate
command-line options.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import typer

from evenmatch.cli.console import (
    as_json,
    current_command,
    print_message,
    print_output,
    print_text_or_json,
    show_progress,
)
from evenmatch.data.cards import MetricCard
from evenmatch.data.scores import replace_file
from evenmatch.data.tables import page_width, records_to_tsv, wrap_prose
from evenmatch.distributed.pool import Runner
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.ray_cluster import Ray
from evenmatch.distributed.run import RETRIES, SHARD_ROWS
from evenmatch.distributed.session import WorkerSession, worker_session
from evenmatch.errors import DataError
from evenmatch.types import Run

METRIC_HELP = (
    "Metric name or spec; may be given several times. Metrics that use the same model share one "
    "pass over the texts."
)

# Progress counts training pairs and then the pairs of the evaluation, so "scored" would be wrong.
PROGRESS_WORD = "processed"

REQUIRED: Any = ...

T = TypeVar("T")


def value(
    default: T, form: str, help_text: str, shown: bool | str = True, least: float | None = None
) -> T:
    """Return an option with a value.

    `form` is the name of the value, after the names of the option if they are not those of the
    parameter: 'FILE' or '--out -o FILE'. `shown` describes the default in help if it is empty.
    """
    *names, metavar = form.split()
    made: T = typer.Option(
        default, *names, metavar=metavar, help=help_text, show_default=shown, min=least
    )
    return made


def argument(default: T, metavar: str, help_text: str, shown: bool | str = True) -> T:
    """Return a positional argument; `shown` as for `value`."""
    made: T = typer.Argument(default, metavar=metavar, help=help_text, show_default=shown)
    return made


def flag(default: T, name: str, help_text: str) -> T:
    """Return an option without a value: '--name' or '--name/--no-name'."""
    made: T = typer.Option(default, name, help=help_text)
    return made


def metric(default: T, help_text: str, shown: bool | str = True) -> T:
    """Return the option -m for one or several metrics."""
    return value(default, "--metric -m METRIC", help_text, shown=shown)


def count(default: int, help_text: str, least: int = 1) -> int:
    """Return an integer option with the minimum `least`."""
    return value(default, "N", help_text, least=least)


def repeatable(default: T, form: str, help_text: str, **more: Any) -> T:
    """Return an option that may be given several times; arguments as for `value`."""
    return value(default, form, f"{help_text}; may be given several times.", **more)


def resolve_metrics(given: Sequence[str] | None, published: bool) -> list[str]:
    """Return the distinct metrics to run; by default bertscore, or none if `published`."""
    return list(dict.fromkeys(given or ([] if published else ["bertscore"])))


METRICS = metric(["bertscore"], METRIC_HELP)
SOURCES = value("", "FILE", "Source texts (the inputs of the generation system), one per line.")
MODEL_METRIC = metric(
    "bertscore", "Alignment metric that uses a model, for example bertscore(model='FOLDER')."
)
RATINGS: str = argument(
    REQUIRED,
    "DATA",
    "Human ratings: the name of a public data set (see: evenmatch data list), a folder in WMT "
    "layout, or a JSONL, TSV, CSV or Parquet file with the columns system, segment, candidate, "
    "references, rating.",
)
METRIC_FOLDER: str = value(
    REQUIRED, "--out -o FOLDER", "New folder for the metric and its card (README)."
)
PARTS = value(
    "",
    "DIR",
    "With --on: store finished shards here, so that the next run computes only missing ones.",
)
JSON = flag(False, "--json", "Print the result as one JSON document.")
CONFIDENCE = value(0.95, "LEVEL", "Confidence level of the intervals, between 0 and 1.")
SCALE = value(
    1.0,
    "FACTOR",
    "Multiply all scores by this factor; with 100, BLEU is 28.9 instead of 0.289.",
)
OUT = value(
    "",
    "--out -o FILE",
    "Also write a file: with the suffix .html a report with tables and plots; with .json, .tsv, "
    ".tex or .txt the result in that format.",
)
SEED = count(0, "Random seed.", least=0)
PROGRESS = flag(
    None,
    "--progress/--no-progress",
    "Show progress on standard error. By default only if standard error is a terminal.",
)


@dataclass(frozen=True)
class ResamplingOptions:
    """Options of confidence intervals and significance tests."""

    confidence: float = CONFIDENCE
    resamples: int = count(
        1000, "Number of bootstrap resamples, for intervals and bootstrap tests."
    )
    trials: int = count(10_000, "Number of random permutations, for permutation tests.")
    seed: int = SEED


@dataclass(frozen=True)
class RunOptions:
    """Options of every command that runs metrics: device, batch size, cache, progress."""

    device: str = value(
        "cpu", "NAME", "PyTorch device to run models on, for example cpu or cuda:0."
    )
    threads: int = count(0, "Number of CPU threads; 0 uses PyTorch's default.", least=0)
    batch_tokens: int = count(Run().batch_tokens, "Maximum number of tokens in one forward pass.")
    cache: bool = flag(
        False,
        "--cache/--no-cache",
        "Store token vectors on disk and reuse them in later runs. They are rounded to 16 bits, "
        "which signatures record as 'vectors compact'.",
    )
    exact_cache: bool = flag(
        False,
        "--exact-cache",
        "Store vectors in full precision (twice the disk space); implies --cache.",
    )
    progress: bool | None = PROGRESS

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


PAGE_SUFFIXES = (".html", ".htm")

OUT_FORMATS: Mapping[str, OutputFormat] = {
    ".json": "json",
    ".tsv": "tsv",
    ".tex": "latex",
    ".txt": "text",
}


def check_scale(scale: float) -> None:
    """Reject a value of --scale that is not above 0."""
    if not 0 < scale < float("inf"):
        raise typer.BadParameter(f"--scale must be a number above 0, got {scale:g}")


def check_out(out: str) -> None:
    """Reject a file for --out whose format is unknown or whose folder does not exist."""
    if out and Path(out).suffix.lower() not in (*PAGE_SUFFIXES, *OUT_FORMATS):
        known = ", ".join([PAGE_SUFFIXES[0], *OUT_FORMATS])
        raise typer.BadParameter(f"unknown file type of {out}; the suffix must be one of {known}")
    if out:
        check_folder(out)


def check_folder(out: str) -> None:
    """Reject a file to write if its folder does not exist."""
    if not Path(out).resolve().parent.is_dir():
        raise DataError(f"there is no folder {Path(out).parent} to write in; create it first")


def system_files(candidates: Sequence[str]) -> dict[str, str]:
    """Return the candidate file of each system, given as FILE or NAME=FILE.

    A system without a name is called by its file name without suffixes, or by its path if two are
    alike.
    """
    paths, names = [], []
    for given in candidates:
        name, sign, path = given.partition("=")
        named = bool(name and sign and path) and not Path(given).exists()
        file = Path(given).name.removesuffix(".gz")
        paths.append(path if named else given)
        names.append(name if named else file.rpartition(".")[0] or file)
    both = list(zip(names, paths, strict=True))
    systems = [path if names.count(name) > 1 else name for name, path in both]
    if len(set(systems)) < len(systems):
        raise typer.BadParameter("the same candidate file is given twice; give one file per system")
    return dict(zip(systems, paths, strict=True))


@dataclass(frozen=True)
class OutputOptions:
    """Options that select the output format."""

    style: OutputFormat = value(
        "text", "--format -f FORMAT", f"Output format: {', '.join(get_args(OutputFormat))}."
    )
    json: bool = JSON

    @property
    def format(self) -> OutputFormat:
        """The selected format; --json overrides --format."""
        return "json" if self.json else self.style

    def print_result(
        self,
        found: Any,
        *,
        document: Mapping[str, Any],
        records: Sequence[Mapping[str, object]],
        latex: str,
        out: str = "",
    ) -> None:
        """Print `found` as text, `document` as JSON, `records` as TSV or `latex`.

        LaTeX output begins with `found.notes()` as comments. `out` is also written, as a
        report or in the format of its suffix.
        """
        formats: dict[str, Callable[[], str]] = {
            "json": lambda: as_json(document),
            "tsv": lambda: records_to_tsv(records),
            "latex": lambda: "\n".join([*(f"% {note}" for note in found.notes()), latex]),
            "text": lambda: wrap_prose(str(found)),
        }
        if out.lower().endswith(PAGE_SUFFIXES):
            from evenmatch.reports.results import write_report  # slow to import

            print_message(f"wrote {write_report(found, out, command=current_command())}")
        elif out:
            with page_width(0):
                replace_file(out, formats[OUT_FORMATS[Path(out).suffix.lower()]]() + "\n")
            print_message(f"wrote {out}")
        print_output(formats[self.format]())


Command: TypeAlias = Callable[..., None]


def expand_option_groups(**defaults: object) -> Callable[[Command], Command]:
    """Decorate a command so that each dataclass parameter becomes separate options.

    Typer reads the options from the signature of a function. The wrapper's signature lists the
    fields of each dataclass in place of the parameter; when called, it builds the dataclasses and
    passes them to the command. `defaults` override the defaults of the fields.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        groups = {
            name: inspect.signature(own[name].annotation, eval_str=True).parameters
            for name, p in own.items()
            if is_dataclass(p.annotation)
        }

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, options in groups.items():
                given[name] = own[name].annotation(**{o: given.pop(o) for o in options})
            command(**given)

        options = {o: p for name in own for o, p in groups.get(name, {name: own[name]}).items()}
        for name, value in defaults.items():
            changed = copy(options[name].default)
            changed.default = value
            options[name] = options[name].replace(default=changed)
        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in options.values()]
        with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in shown}
        return with_options

    return decorate


@dataclass(frozen=True)
class WorkerOptions:
    """Options of commands that can distribute their pairs over workers."""

    on: Literal["processes", "ray"] | None = value(
        None, "WHERE", "Distribute the pairs over workers: processes (on this machine) or ray."
    )
    workers: int = count(0, "Number of workers; 0 starts one per CPU core.", least=0)
    shard_rows: int = count(SHARD_ROWS, "Number of rows scored and saved together.")
    retries: int = count(RETRIES, "Number of retries of a failed shard.", least=0)
    max_failures: int | None = value(
        None, "N", "Stop when more than N shards have failed.", shown="no limit", least=0
    )
    ray_address: str = value(
        "",
        "ADDRESS",
        "Address of the Ray cluster, as in ray.init: HOST:PORT, auto, or ray://HOST:PORT.",
        shown="start a local cluster for this run",
    )
    ray_working_dir: str = value(
        "", "DIR", "Folder to copy to every Ray node; relative paths in specs are resolved there."
    )
    ray_models: str = value(
        "",
        "DIR",
        "Folder of the embedded models on the Ray nodes.",
        shown="EVENMATCH_MODELS of each node",
    )

    def check(self, *others: object) -> None:
        """Reject options, `others` included, that need --on or --on ray if it is not given."""
        for_ray = any((self.ray_address, self.ray_working_dir, self.ray_models))
        needs_on = any((*others, self.workers, self.max_failures is not None, for_ray))
        if self.on is None and needs_on:
            raise typer.BadParameter("--workers, --parts and other worker options need --on")
        if self.on != "ray" and for_ray:
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


def print_metric_card(made: MetricCard, json: bool) -> None:
    """Print the card of a new metric as text or JSON, and how to use the metric."""
    print_text_or_json(made, made.document, json=json)
    print_message(f"wrote {made.folder}; use it as a metric: -m {made.metric}")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of long training runs that can be stopped and continued."""

    minutes: float = value(
        40.0,
        "N",
        "Stop after N minutes (0: no limit); run the same command again to continue.",
        least=0.0,
    )
    threads: int = count(1, "Number of CPU threads.")


def time_limit(minutes: float) -> Callable[[], bool]:
    """Return a function that says whether `minutes` have passed since now; 0 means no limit."""
    start = time.monotonic()
    return lambda: bool(minutes) and time.monotonic() - start > 60 * minutes
