"""evenmatch score: score candidates from files against references, with one metric or several.

`score` is the command. Without --on, `score_pair_file` streams the pairs through the metrics in
this process, and `score_system_files` scores several systems; with --on, `score_with_workers`
distributes the pairs. They return a `ScoreSummary` or a `SystemsSummary`, which format the result.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import as_json, print_first, print_message, print_output
from evenmatch.data.files import display_path
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file, read_system_files
from evenmatch.data.scores import (
    SCORE_SUFFIXES,
    LayoutStyle,
    ScoredPair,
    ScoreLayout,
    atomic_write,
    exact_cell,
    is_score_file,
    score_records,
    score_writer,
    scored_pairs,
)
from evenmatch.data.tables import (
    SystemGrid,
    TextTable,
    direction_label,
    format_number,
    table_to_latex,
    table_to_text,
    table_to_tsv,
)
from evenmatch.distributed.driver import RunMetrics, manifest_header
from evenmatch.distributed.run import ScoreFilesResult, resumable_run, score_files
from evenmatch.distributed.worker import PACKED_SUFFIX, merge_tallies, tally_record
from evenmatch.errors import DataError, InputError
from evenmatch.evaluation.compare import corpus_scores_note, score_systems
from evenmatch.registry import CallContext
from evenmatch.registry.opening import count_idf
from evenmatch.reports.score_page import metric_document
from evenmatch.scoring.available import select_metrics
from evenmatch.scoring.inputs import HashedPairs, make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.streaming import (
    STREAM_CHUNK_PAIRS,
    RunningMean,
    count_flags,
    score_stream,
)
from evenmatch.types import Pair, Run

_REPORT_FORMATS: Mapping[str, opt.OutputFormat] = {".json": "json", ".tex": "latex", ".txt": "text"}


@opt.expand_option_groups()
def score(
    *,
    candidates: list[str] | None = opt.value(
        None,
        "--candidates -c FILE",
        "File of candidates, one per line. Several files, each with its own -c, are several "
        "systems, named by file name without suffix, or as in -c NAME=FILE.",
    ),
    references: list[str] | None = opt.repeatable(
        None, "--references -r FILE", "File of references, one per line"
    ),
    metric: list[str] = opt.METRICS,
    file: str = opt.argument(
        "",
        "FILE",
        "A .jsonl, .tsv, .csv or .parquet file with the fields candidate (or prediction), "
        "references (or reference) and optionally source; - reads JSONL from standard input. With "
        "--on, also a folder of .jsonl and .parquet files.",
    ),
    sources: str = opt.SOURCES,
    segments: bool = opt.flag(False, "--segments", "Also print the score of every pair."),
    scale: float = opt.SCALE,
    printing: opt.OutputOptions,
    out: str = opt.value(
        "",
        "FILE",
        "Also write a file. With the suffix .jsonl, .tsv, .csv or .parquet: the scores of every "
        "pair, with the other fields of its record. With .json, .tex or .txt: the printed result.",
    ),
    layout: LayoutStyle = opt.value(
        "long",
        "LAYOUT",
        "Layout of the scores of every pair. long: a row per pair and metric; wide: a row per "
        "pair, a column per metric.",
    ),
    resume: bool = opt.flag(
        False,
        "--resume",
        "With --on: continue an interrupted run. Without --on, runs always continue.",
    ),
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
) -> None:
    """Score candidates against references.

    Give line-aligned text files with -c and -r, or one FILE with one record per pair. Files
    are streamed and may be larger than memory. Several -c are several systems, which are printed as
    one table. -m all runs every metric that needs no download and lists the reasons why others
    cannot run. A run that writes the scores of every pair to --out is continued by the same command
    if it was interrupted. For large files, --on distributes FILE over workers.
    """
    scaling.check()
    opt.check_scale(scale)
    result: ScoreSummary | SystemsSummary
    if scaling.on is not None:
        check_worker_usage(
            file, out, segments=segments, lines=bool(candidates or references or sources)
        )
        result = score_with_workers(
            file, out, metric, running, scaling, resume, layout=layout, scale=scale
        )
    else:
        report = _report_format(out)
        if resume and not is_score_file(out):
            raise typer.BadParameter("--resume needs --out: a .jsonl, .tsv, .csv or .parquet file")
        _check_input(file, candidates or [], references or [], sources)
        systems = opt.system_files(candidates or [])
        with running.settings() as settings:
            run = make_run(**settings)
            wanted, reasons = select_metrics(metric, run)
            shared: dict[str, Any] = {
                "keep": segments,
                "out": out if is_score_file(out) else "",
                "layout": ScoreLayout(layout, scale=scale),
            }
            if len(systems) > 1:
                result = score_system_files(
                    wanted, systems, references or [], sources, settings, **shared
                )
            else:
                pairs: PairFile
                if file:
                    pairs = open_pair_file(file)
                else:
                    [path] = systems.values()
                    pairs = LineAlignedFiles(path, tuple(references or ()), sources)
                result = score_pair_file(
                    wanted, pairs, run, chunk_size=scaling.shard_rows, **shared
                )
        result = dataclasses.replace(result, absent=reasons)
        if report:
            with atomic_write(out) as place:
                Path(place).write_text(result.format(report) + "\n", "utf-8")
    print_output(result.format(printing.format))
    print_warnings(result)


def _check_input(file: str, candidates: list[str], references: list[str], sources: str) -> None:
    if file and (candidates or references or sources):
        raise typer.BadParameter("give either FILE, or -c and -r, not both")
    if candidates and not references:
        raise typer.BadParameter(
            "-r REFERENCES is missing: give a file of references, one per line"
        )
    if not file and not candidates:
        raise typer.BadParameter("nothing to score: give FILE, or -c CANDIDATES and -r REFERENCES")


def _report_format(out: str) -> opt.OutputFormat | None:
    """Return the format of a printed result; None if `out` is empty or a file of scores."""
    if not out or is_score_file(out):
        return None
    for suffix, style in _REPORT_FORMATS.items():
        if out.lower().endswith(suffix):
            return style
    known = ", ".join([*SCORE_SUFFIXES, *_REPORT_FORMATS])
    page = ""
    if out.lower().endswith((".html", ".htm")):
        data = Path(out).with_suffix(".json")
        page = (
            f"; for a page: evenmatch score … --segments --out {data}, then evenmatch report {data}"
        )
    raise typer.BadParameter(f"unknown file type of {out}; the suffix must be one of {known}{page}")


def check_worker_usage(file: str, out: str, *, segments: bool, lines: bool) -> None:
    """Reject options that cannot be combined with --on."""
    if lines or not file:
        raise typer.BadParameter("--on needs FILE or a folder, not -c and -r")
    if segments:
        raise typer.BadParameter(
            "with --on the scores of every pair are written to --out; remove --segments"
        )
    if not out:
        raise typer.BadParameter(
            "--on needs --out: a .jsonl, .tsv, .csv or .parquet file, or a folder"
        )


def score_with_workers(
    file: str,
    out: str,
    metrics: Sequence[str],
    running: opt.RunOptions,
    scaling: opt.WorkerOptions,
    resume: bool,
    *,
    layout: LayoutStyle = "long",
    scale: float = 1.0,
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
            layout=layout,
            scale=scale,
            **settings,
        )
    if found.resumed_rows:
        print_message(f"{found.resumed_rows} of {found.rows} rows were scored in an earlier run")
    if found.failures:
        raise _failure_error(found, out)
    lower, written = _lower_is_better(wanted), ScoreLayout(scale=scale)
    return ScoreSummary(found.tallies, found.flagged, absent=reasons, lower=lower, layout=written)


def _failure_error(found: ScoreFilesResult, out: str) -> DataError:
    print_first(found.failures, 10)
    count = len(found.failures)
    return DataError(
        f"{count} {'shard' if count == 1 else 'shards'} failed; the other {found.rows} rows are "
        f"scored and stored for {out}; correct the rows listed above and continue with --resume"
    )


def score_pair_file(
    metrics: Sequence[str],
    pairs: PairFile,
    run: Run,
    *,
    keep: bool,
    out: str = "",
    layout: ScoreLayout = ScoreLayout(),
    chunk_size: int = STREAM_CHUNK_PAIRS,
) -> ScoreSummary:
    """Score a file of pairs; keep the score of every pair if `keep`, write it if `out` is given.

    With `out`, an interrupted run is continued; `chunk_size` is the number of pairs between two
    savings.
    """
    names = list(dict.fromkeys(metrics))
    context = CallContext(run, pairs if pairs.rereadable else iter(pairs))
    parts = {name: count_idf(as_metric(name), context) for name in names}
    tallies: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    single: list[RunningMean] = []
    flagged: Counter[str] = Counter()
    kept: list[ScoredPair] = []
    rows = 0
    with ExitStack() as files:
        store = write = None
        hashed = HashedPairs(pairs)
        source = hashed if pairs.rereadable else iter(hashed)
        if out:
            header = partial(manifest_header, RunMetrics(parts), PACKED_SUFFIX, chunk_size, run)
            store = files.enter_context(resumable_run(out, _source_name(pairs), header))
            write = files.enter_context(score_writer(out, layout))
        stream = score_stream(
            list(parts.values()),
            source,
            run,
            chunk_size=chunk_size if out else STREAM_CHUNK_PAIRS,
            total=pairs.total,
            store=store,
        )
        for chunk, found in stream:
            if keep or write:
                scored = list(scored_pairs(rows, names, found, chunk))
                kept += scored if keep else []
                if write:
                    write(scored)
            if not rows:
                single = [RunningMean().add(scores) for scores in found]
            rows += len(chunk)
            for name, scores in zip(names, found, strict=True):
                tallies[name].append(tally_record(scores))
            flagged += count_flags(found)
        if not rows:
            raise InputError("nothing to score: the input contains no pairs")
    if store and store.resumed_rows:
        print_message(f"{store.resumed_rows} of {rows} rows were scored in an earlier run")
    # A corpus score that is no function of summed counts, such as NIST's, needs a single chunk.
    whole = len(tallies[names[0]]) == 1
    means = {
        name: single[n] if whole else merge_tallies(parts[name], tallies[name])
        for n, name in enumerate(names)
    }
    return ScoreSummary(
        {name: mean.scaled(layout.scale) for name, mean in means.items()},
        flagged,
        [pair.scaled(layout.scale) for pair in kept] if keep else None,
        texts=hashed.digest,
        lower=_lower_is_better(names),
        layout=layout,
    )


def _lower_is_better(metrics: Sequence[str]) -> frozenset[str]:
    return frozenset(name for name in metrics if not as_metric(name).higher_is_better)


def _source_name(pairs: PairFile) -> str:
    path = pairs.candidates if isinstance(pairs, LineAlignedFiles) else pairs.path
    return display_path(path)


def score_system_files(
    metrics: Sequence[str],
    systems: Mapping[str, str],
    references: Sequence[str],
    sources: str,
    settings: Mapping[str, Any],
    *,
    keep: bool,
    out: str = "",
    layout: ScoreLayout = ScoreLayout(),
) -> SystemsSummary:
    """Score the candidate files of several systems; every text is encoded once.

    Rows of a score file have the field `system`.
    """
    names = list(dict.fromkeys(metrics))
    candidates, several, source_texts = read_system_files(systems, references, sources)
    with ExitStack() as files:
        write = files.enter_context(score_writer(out, layout)) if out else None
        scored = score_systems(candidates, several, names, source_texts, settings)
        summaries = {}
        for system, texts in candidates.items():
            found = [each.systems[system].scores for each in scored]
            pairs = [Pair(text, (), fields={"system": system}) for text in texts]
            rows = list(scored_pairs(0, names, found, pairs)) if keep or out else []
            if write:
                write(rows)
            means = [RunningMean().add(scores).scaled(layout.scale) for scores in found]
            summaries[system] = ScoreSummary(
                dict(zip(names, means, strict=True)),
                count_flags(found),
                [row.scaled(layout.scale) for row in rows] if keep else None,
                lower=frozenset(each.metric for each in scored if not each.higher_is_better),
                layout=layout,
            )
    return SystemsSummary(summaries)


@dataclass(frozen=True)
class ScoreSummary:
    """Means by metric, the number of rows with each flag, and the scores of every pair if kept."""

    tallies: Mapping[str, RunningMean]
    flagged: Mapping[str, int]
    rows: Sequence[ScoredPair] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)  # reason by metric that cannot run
    texts: str = ""  # hash of the texts
    lower: frozenset[str] = frozenset()  # metrics of which a lower score is better
    layout: ScoreLayout = ScoreLayout()

    def format(self, style: opt.OutputFormat) -> str:
        """Return the result in an output format."""
        if style == "json":
            return as_json(self.document())
        if style == "tsv":
            return table_to_tsv(self.exact_table())
        tables = [] if self.rows is None else [row_table(self.rows, self.layout, self.show)]
        if style == "latex":
            shown = table_to_latex(tables[0] if tables else self._mean_table(self.show))
            return "\n".join([*(f"% {note}" for note in self.notes()), shown])
        tables.append(self._mean_table(self.show))
        return "\n\n".join([*map(table_to_text, tables), "\n".join(self.notes())])

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        metrics = {}
        for name, t in self.tallies.items():
            kept = None if self.rows is None else [row.scores[name] for row in self.rows]
            metrics[name] = metric_document(t.signature, t.mean, t.corpus, kept)
        document: dict[str, Any] = {"metrics": metrics}
        if self.texts and self.rows is not None:
            document["texts"] = self.texts
        return document | ({"absent": dict(self.absent)} if self.absent else {})

    def notes(self) -> list[str]:
        """The direction of metrics, and their signatures."""
        signatures = [f"{name}: {tally.signature}" for name, tally in self.tallies.items()]
        lower = [name for name in self.tallies if name in self.lower]
        return [*([f"↓ lower is better: {', '.join(lower)}"] if lower else []), *signatures]

    def show(self, value: Any) -> str:
        """Format a number or a list of flags for reading."""
        if isinstance(value, list):
            return ", ".join(value)
        return format_number(value, self.layout.scale)

    def _mean_table(self, show: Callable[[float | None], str], *, arrows: bool = True) -> TextTable:
        """Return a row per metric; the column of corpus scores is left out if there are none."""
        has_corpus = any(tally.corpus is not None for tally in self.tallies.values())
        corpus_column = ["corpus"] if has_corpus else []
        table = [["metric", "mean", "precision", "recall", *corpus_column, "pairs"]]
        for name, tally in self.tallies.items():
            mean, corpus = tally.mean, [tally.corpus] if has_corpus else []
            numbers = [mean.value, mean.precision, mean.recall, *corpus]
            label = direction_label(name, name not in self.lower) if arrows else name
            table.append([label, *map(show, numbers), str(tally.count)])
        return table

    def exact_table(self) -> TextTable:
        """Return the scores of every pair if kept, else the means, in full precision."""
        if self.rows is not None:
            return row_table(self.rows, self.layout, exact_cell)
        means = self._mean_table(exact_cell, arrows=False)
        signatures = ["signature", *(tally.signature for tally in self.tallies.values())]
        return [[*row, signature] for row, signature in zip(means, signatures, strict=True)]


def row_table(
    rows: Sequence[ScoredPair], layout: ScoreLayout, show: Callable[[Any], str]
) -> TextTable:
    """Return the scores of every pair as in a score file; `show` formats numbers and flags."""
    records = list(score_records(rows, layout.style))
    columns = list(dict.fromkeys(name for record in records for name in record))
    ours = {"precision", "recall", "flags"}
    cells = (
        [
            show(value) if isinstance(value, float) or name in ours else exact_cell(value)
            for name in columns
            for value in [record.get(name)]
        ]
        for record in records
    )
    return [columns, *cells]


@dataclass(frozen=True)
class SystemsSummary:
    """The scores of several systems by the same metrics."""

    systems: Mapping[str, ScoreSummary]
    absent: Mapping[str, str] = field(default_factory=dict)

    def format(self, style: opt.OutputFormat) -> str:
        """Return the result in an output format."""
        each = list(self.systems.values())
        if style == "json":
            absent = {"absent": dict(self.absent)} if self.absent else {}
            systems = {name: summary.document() for name, summary in self.systems.items()}
            return as_json({"systems": systems, **absent})
        rows = [row for summary in each for row in summary.rows or ()]
        if style == "tsv":
            return table_to_tsv(
                row_table(rows, each[0].layout, exact_cell) if rows else self._mean_table()
            )
        if style == "latex":
            return "\n".join([*(f"% {note}" for note in self._notes()), self._grid().to_latex()])
        parts = [table_to_text(row_table(rows, each[0].layout, each[0].show))] if rows else []
        return "\n\n".join([*parts, self._grid().to_text(), "\n".join(self._notes())])

    def _grid(self) -> SystemGrid:
        """Return the table of systems and metrics: corpus scores if a metric has them, or means."""
        first = next(iter(self.systems.values()))
        return SystemGrid(
            {name: name not in first.lower for name in first.tallies},
            {
                system: {
                    name: tally.mean.value if tally.corpus is None else tally.corpus
                    for name, tally in summary.tallies.items()
                }
                for system, summary in self.systems.items()
            },
            scale=first.layout.scale,
        )

    def _notes(self) -> list[str]:
        first = next(iter(self.systems.values()))
        corpus = [name for name, tally in first.tallies.items() if tally.corpus is not None]
        return [*corpus_scores_note(corpus, first.tallies, "pairs"), *first.notes()]

    def _mean_table(self) -> TextTable:
        tables = {name: summary.exact_table() for name, summary in self.systems.items()}
        header = next(iter(tables.values()))[0]
        return [
            ["system", *header],
            *([name, *row] for name, table in tables.items() for row in table[1:]),
        ]


def print_warnings(result: ScoreSummary | SystemsSummary) -> None:
    """Print the number of flagged rows and the metrics that cannot run on standard error."""
    systems = {"": result} if isinstance(result, ScoreSummary) else result.systems
    for system, summary in systems.items():
        if summary.flagged:
            flags = sorted(summary.flagged.items())
            counts = ", ".join(f"{count} {flag}" for flag, count in flags)
            pairs = next(iter(summary.tallies.values())).count
            of = f" of {system}" if system else ""
            print_message(f"flagged rows{of}: {counts} (of {pairs})")
    for name, why in result.absent.items():
        print_message(f"{name} cannot run: {why}")
