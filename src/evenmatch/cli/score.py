"""evenmatch score: score candidates from files against references, with one metric or several.

`score` is the command. Without --on, `score_pair_file` streams the pairs through the metrics in
this process; with --on, `score_with_workers` distributes them. Both return a `ScoreSummary`, which
formats the result.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import as_json, print_first, print_message, print_output
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
from evenmatch.scoring.inputs import HashedPairs, make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.streaming import RunningMean, count_flags, score_stream
from evenmatch.types import Run

_REPORT_FORMATS: Mapping[str, opt.OutputFormat] = {".json": "json", ".tex": "latex", ".txt": "text"}


@opt.expand_option_groups()
def score(
    *,
    candidates: str = opt.value("", "--candidates -c FILE", "File of candidates, one per line."),
    references: list[str] | None = opt.repeatable(
        None, "--references -r FILE", "File of references, one per line"
    ),
    metric: list[str] = opt.METRICS,
    file: str = opt.argument(
        "",
        "FILE",
        "A .jsonl, .tsv or .parquet file with the fields candidate (or prediction), references (or "
        "reference) and optionally source; - reads JSONL from standard input. With --on, also a "
        "folder of .jsonl and .parquet files.",
    ),
    sources: str = opt.SOURCES,
    segments: bool = opt.flag(False, "--segments", "Also print the score of every pair."),
    printing: opt.OutputOptions,
    out: str = opt.value(
        "",
        "FILE",
        "Also write a file. With the suffix .jsonl, .tsv or .parquet: the scores of every pair. "
        "With .json, .tex or .txt: the printed result.",
    ),
    resume: bool = opt.flag(
        False,
        "--resume",
        "With --on: continue the interrupted run that wrote --out; only missing rows are scored.",
    ),
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
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
    else:
        report = _report_format(out)
        pairs = _open_pairs(file, candidates, references or [], sources)
        with running.settings() as settings:
            run = make_run(**settings)
            rows = out if is_score_file(out) else ""
            wanted, reasons = select_metrics(metric, run)
            result = score_pair_file(wanted, pairs, run, keep=segments, out=rows)
        result = dataclasses.replace(result, absent=reasons)
        if report:
            with atomic_write(out) as place:
                Path(place).write_text(result.format(report) + "\n", "utf-8")
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


def _report_format(out: str) -> opt.OutputFormat | None:
    """Return the format of a printed result; None if `out` is empty or a file of scores."""
    if not out or is_score_file(out):
        return None
    for suffix, style in _REPORT_FORMATS.items():
        if out.lower().endswith(suffix):
            return style
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
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
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
    return ScoreSummary(found.tallies, found.flagged, absent=reasons)


def _failure_error(found: ScoreFilesResult, out: str) -> DataError:
    print_first(found.failures, 10)
    count = len(found.failures)
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
        hashed = HashedPairs(pairs)
        source = hashed if pairs.rereadable else iter(hashed)
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
    return ScoreSummary(
        dict(zip(names, tallies, strict=True)), flagged, kept if keep else None, texts=hashed.digest
    )


@dataclass(frozen=True)
class ScoreSummary:
    """Means by metric, the number of rows with each flag, and the scores of every pair if kept."""

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    rows: Sequence[ScoreRow] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)  # reason by metric that cannot run
    texts: str = ""  # hash of the texts

    def format(self, style: opt.OutputFormat) -> str:
        """Return the result in an output format."""
        if style == "json":
            return as_json(self.document())
        if style == "tsv":
            return table_to_tsv(self._exact_table())
        tables = [] if self.rows is None else [self._row_table()]
        recipes = [f"{name}: {tally.signature}" for name, tally in self.tallies.items()]
        if style == "latex":
            shown = table_to_latex(tables[0] if tables else self._mean_table(format_number))
            return "\n".join([*(f"% {recipe}" for recipe in recipes), shown])
        tables.append(self._mean_table(format_number))
        return "\n\n".join([*map(table_to_text, tables), "\n".join(recipes)])

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        metrics = {}
        for name, t in self.tallies.items():
            kept = None if self.rows is None else [r.score for r in self.rows if r.metric == name]
            metrics[name] = metric_document(t.signature, t.mean, t.corpus, kept)
        document: dict[str, Any] = {"metrics": metrics}
        if self.texts and self.rows is not None:
            document["texts"] = self.texts
        return document | ({"absent": dict(self.absent)} if self.absent else {})

    def _mean_table(self, show: Callable[[float | None], str]) -> TextTable:
        """Return a row per metric; the column of corpus scores is left out if there are none."""
        has_corpus = any(tally.corpus is not None for tally in self.tallies.values())
        corpus_column = ["corpus"] if has_corpus else []
        table = [["metric", "mean", "precision", "recall", *corpus_column, "pairs"]]
        for name, tally in self.tallies.items():
            mean, corpus = tally.mean, [tally.corpus] if has_corpus else []
            numbers = [mean.value, mean.precision, mean.recall, *corpus]
            table.append([name, *map(show, numbers), str(tally.count)])
        return table

    def _exact_table(self) -> TextTable:
        """Return the scores of every pair if kept, else the means, in full precision."""
        if self.rows is not None:
            return [list(SCORE_COLUMNS), *map(row_to_cells, self.rows)]
        means = self._mean_table(lambda number: "" if number is None else repr(number))
        signatures = ["signature", *(tally.signature for tally in self.tallies.values())]
        return [[*row, signature] for row, signature in zip(means, signatures, strict=True)]

    def _row_table(self) -> TextTable:
        """Return the scores of every pair, rounded."""
        rows = []
        for row in self.rows or ():
            score = row.score
            numbers = map(format_number, (score.value, score.precision, score.recall))
            rows.append([str(row.row), row.metric, *numbers, ", ".join(sorted(score.flags))])
        return [list(SCORE_COLUMNS), *rows]


def print_warnings(result: ScoreSummary) -> None:
    """Print the number of flagged rows and the metrics that cannot run on standard error."""
    if result.flagged:
        counts = ", ".join(f"{count} {flag}" for flag, count in sorted(result.flagged.items()))
        pairs = next(iter(result.tallies.values())).count
        print_message(f"flagged rows: {counts} (of {pairs})")
    for name, why in result.absent.items():
        print_message(f"{name} cannot run: {why}")
