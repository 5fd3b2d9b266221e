"""evenmatch score: score candidates from files against references, with one metric or several.

`score` is the command. Without --on, `score_pair_file` streams the pairs through the metrics in
this process; with --on, `score_with_workers` distributes them. Both return a `ScoreSummary`, which
formats the result.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import typer

from evenmatch.cli.console import as_json, print_message, print_output
from evenmatch.cli.options import (
    MetricsOption,
    OutputFormat,
    OutputOptions,
    RunOptions,
    SourcesOption,
    WorkerOptions,
    expand_option_groups,
    optional_option,
)
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file
from evenmatch.data.scores import (
    SCORE_COLUMNS,
    SCORE_SUFFIXES,
    ScoreRow,
    atomic_write,
    is_score_file,
    row_to_cells,
    score_rows,
    score_writer,
)
from evenmatch.data.tables import (
    TextTable,
    format_number,
    table_to_latex,
    table_to_text,
    table_to_tsv,
)
from evenmatch.distributed.run import ScoreFilesResult, score_files
from evenmatch.errors import DataError, InputError
from evenmatch.reports.score_page import metric_document
from evenmatch.scoring.available import select_metrics
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.streaming import RunningMean, count_flags, score_stream
from evenmatch.types import Run

_REPORT_FORMATS = {
    ".json": OutputFormat.json,
    ".tex": OutputFormat.latex,
    ".txt": OutputFormat.text,
}

_MAX_FAILURES_SHOWN = 10


PairsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A .jsonl, .tsv or .parquet file with the fields candidate (or prediction), "
        "references (or reference) and optionally source; - reads JSONL from standard input. "
        "With --on, also a folder of .jsonl and .parquet files.",
        show_default=False,
    ),
]


CandidatesOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--candidates",
        "-c",
        metavar="FILE",
        help="File of candidates, one per line.",
        default_factory=str,
        show_default=False,
    ),
]


ReferencesOption: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--references",
        "-r",
        metavar="FILE",
        help="File of references, one per line; may be given several times.",
        default_factory=list,
        show_default=False,
    ),
]


SegmentsOption: TypeAlias = Annotated[
    bool, typer.Option("--segments", help="Also print the score of every pair.")
]


OutputFileOption: TypeAlias = Annotated[
    str,
    optional_option(
        "FILE",
        "Also write a file. With the suffix .jsonl, .tsv or .parquet: the scores of every pair. "
        "With .json, .tex or .txt: the printed result.",
    ),
]


ResumeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="With --on: continue the interrupted run that wrote --out; only missing rows are "
        "scored.",
    ),
]


@expand_option_groups()
def score(
    candidates: CandidatesOption,
    references: ReferencesOption,
    metric: MetricsOption,
    file: PairsArgument = "",
    sources: SourcesOption = "",
    segments: SegmentsOption = False,
    *,
    printing: OutputOptions,
    out: OutputFileOption = "",
    resume: ResumeOption = False,
    running: RunOptions,
    scaling: WorkerOptions,
) -> None:
    """Score candidates against references.

    Give line-aligned text files with -c and -r, or one FILE with one record per pair. Files
    are streamed and may be larger than memory. -m all runs every metric that needs no download and
    lists the reasons why others cannot run. For large files, --on distributes FILE over workers
    and writes the scores to --out; --resume continues such a run after an interruption.
    """
    scaling.check(resume)
    if scaling.on is not None:
        check_worker_usage(
            file, out, segments=segments, lines=bool(candidates or references or sources)
        )
        result = score_with_workers(file, out, metric, running, scaling, resume)
        print_output(result.format(printing.format))
        return
    _check_output(out)
    pairs = _open_pairs(file, candidates, references, sources)
    with running.settings() as settings:
        run = make_run(**settings)
        rows = out if is_score_file(out) else ""
        wanted, reasons = select_metrics(metric, run)
        result = score_pair_file(wanted, pairs, run, keep=segments, out=rows)
    result = dataclasses.replace(result, absent=reasons)
    if report := _report_format(out):
        with atomic_write(out) as place, open(place, "w", encoding="utf-8") as sheet:
            sheet.write(result.format(report) + "\n")
    print_output(result.format(printing.format))
    print_warnings(result)


def _open_pairs(file: str, candidates: str, references: list[str], sources: str) -> PairFile:
    if file and (candidates or references or sources):
        raise typer.BadParameter("give either FILE, or -c and -r, not both")
    if file:
        return open_pair_file(file)
    if not candidates or not references:
        raise typer.BadParameter("nothing to score: give FILE, or -c CANDIDATES and -r REFERENCES")
    return LineAlignedFiles(candidates, tuple(references), sources)


def _report_format(out: str) -> OutputFormat | None:
    return next(
        (style for end, style in _REPORT_FORMATS.items() if out.lower().endswith(end)), None
    )


def _check_output(out: str) -> None:
    if out and not is_score_file(out) and _report_format(out) is None:
        known = ", ".join([*SCORE_SUFFIXES, *_REPORT_FORMATS])
        raise typer.BadParameter(f"unknown file type of {out}; the suffix must be one of {known}")


def check_worker_usage(file: str, out: str, *, segments: bool, lines: bool) -> None:
    """Reject options that cannot be combined with --on."""
    if lines or not file:
        raise typer.BadParameter("--on needs FILE or a folder, not -c and -r")
    if segments:
        raise typer.BadParameter(
            "with --on the scores of every pair are written to --out; remove --segments"
        )
    if not out:
        raise typer.BadParameter("--on needs --out: a .jsonl, .tsv or .parquet file, or a folder")


def score_with_workers(
    file: str,
    out: str,
    metrics: Sequence[str],
    running: RunOptions,
    scaling: WorkerOptions,
    resume: bool,
) -> ScoreSummary:
    """Score a large file with workers; raise DataError after listing the shards that failed."""
    with running.settings() as settings:
        wanted, reasons = select_metrics(metrics, make_run(**settings))
        found = score_files(
            file,
            out,
            wanted,
            on=scaling.runner(running.threads),
            resume=resume,
            shard_rows=scaling.shard_rows,
            retries=scaling.retries,
            max_failures=scaling.max_failures,
            **settings,
        )
    if found.resumed_rows:
        print_message(f"{found.resumed_rows} of {found.rows} rows were scored in an earlier run")
    if found.failures:
        raise _failure_error(found, out)
    result = ScoreSummary(found.tallies, found.flagged, absent=reasons)
    print_warnings(result)
    return result


def _failure_error(found: ScoreFilesResult, out: str) -> DataError:
    for failure in found.failures[:_MAX_FAILURES_SHOWN]:
        print_message(str(failure))
    count = len(found.failures)
    if count > _MAX_FAILURES_SHOWN:
        print_message(f"and {count - _MAX_FAILURES_SHOWN} more")
    return DataError(
        f"{count} {'shard' if count == 1 else 'shards'} failed; the other {found.rows} rows are "
        f"scored and stored for {out}; correct the rows listed above and continue with --resume"
    )


def score_pair_file(
    metrics: Sequence[str], pairs: PairFile, run: Run, *, keep: bool, out: str = ""
) -> ScoreSummary:
    """Score a file of pairs; keep the score of every pair if `keep`, write it if `out` is given."""
    names = list(dict.fromkeys(metrics))
    parts = [as_metric(name) for name in names]
    tallies = [RunningMean() for _ in names]
    flagged: Counter[str] = Counter()
    kept: list[ScoreRow] = []
    with ExitStack() as files:
        write = files.enter_context(score_writer(out)) if out else None
        source = pairs if pairs.rereadable else iter(pairs)
        for found in score_stream(parts, source, run, total=pairs.total):
            if keep or write:
                rows = list(score_rows(tallies[0].count, names, found))
                kept += rows if keep else []
                if write:
                    write(rows)
            tallies = [t.add(scores) for t, scores in zip(tallies, found, strict=True)]
            flagged += count_flags(found)
        if not tallies[0].count:
            raise InputError("nothing to score: the input contains no pairs")
    return ScoreSummary(dict(zip(names, tallies, strict=True)), flagged, kept if keep else None)


@dataclass(frozen=True)
class ScoreSummary:
    """Means by metric, the number of rows with each flag, and the scores of every pair if kept."""

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    rows: Sequence[ScoreRow] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)  # reason by metric that cannot run

    @property
    def count(self) -> int:
        """The number of pairs scored."""
        return next(iter(self.tallies.values())).count

    def format(self, style: OutputFormat) -> str:
        """Return the result in an output format."""
        if style is OutputFormat.json:
            return as_json(self.document())
        if style is OutputFormat.tsv:
            return table_to_tsv(
                self._exact_mean_table() if self.rows is None else self._exact_row_table()
            )
        if style is OutputFormat.latex:
            recipes = "".join(f"% {line}\n" for line in self._signature_lines())
            return recipes + table_to_latex(
                self._mean_table() if self.rows is None else self._rounded_row_table()
            )
        parts = [] if self.rows is None else [table_to_text(self._rounded_row_table())]
        return "\n\n".join(
            [*parts, table_to_text(self._mean_table()), "\n".join(self._signature_lines())]
        )

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        found: dict[str, Any] = {
            "metrics": {name: self._metric_document(name) for name in self.tallies}
        }
        return found | ({"absent": dict(self.absent)} if self.absent else {})

    def _metric_document(self, name: str) -> dict[str, Any]:
        tally = self.tallies[name]
        kept = self.rows
        segments = None if kept is None else [r.score for r in kept if r.metric == name]
        return metric_document(tally.signature, tally.mean, tally.corpus, segments)

    def _mean_table(self) -> TextTable:
        rows = [
            [name, *map(format_number, means), count] for name, means, count in self._summaries()
        ]
        return [["metric", *self._columns(), "pairs"], *rows]

    def _exact_mean_table(self) -> TextTable:
        rows = [
            [name, *("" if m is None else repr(m) for m in means), count]
            for name, means, count in self._summaries()
        ]
        signed = [[*row, self.tallies[row[0]].signature] for row in rows]
        return [["metric", *self._columns(), "pairs", "signature"], *signed]

    def _summaries(self) -> Iterator[tuple[str, list[float | None], str]]:
        for name, tally in self.tallies.items():
            mean = tally.mean
            corpus = [tally.corpus] if self._has_corpus else []
            yield name, [mean.value, mean.precision, mean.recall, *corpus], str(tally.count)

    def _columns(self) -> list[str]:
        return ["mean", "precision", "recall", *(["corpus"] if self._has_corpus else [])]

    @property
    def _has_corpus(self) -> bool:
        return any(tally.corpus is not None for tally in self.tallies.values())

    def _exact_row_table(self) -> TextTable:
        return [list(SCORE_COLUMNS), *map(row_to_cells, self.rows or ())]

    def _rounded_row_table(self) -> TextTable:
        rows = [
            [str(r.row), r.metric, *map(format_number, (s.value, s.precision, s.recall)), _flags(r)]
            for r in self.rows or ()
            for s in [r.score]
        ]
        return [list(SCORE_COLUMNS), *rows]

    def _signature_lines(self) -> list[str]:
        return [f"{name}: {tally.signature}" for name, tally in self.tallies.items()]


def _flags(row: ScoreRow) -> str:
    return ", ".join(sorted(row.score.flags))


def print_warnings(result: ScoreSummary) -> None:
    """Print the number of flagged rows and the metrics that cannot run on standard error."""
    if result.flagged:
        counts = ", ".join(f"{count} {flag}" for flag, count in sorted(result.flagged.items()))
        print_message(f"flagged rows: {counts} (of {result.count})")
    for name, why in result.absent.items():
        print_message(f"{name} cannot run: {why}")
