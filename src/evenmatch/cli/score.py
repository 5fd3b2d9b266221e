"""evenmatch score: score candidates from files against references, with one metric or several.

`score` is the command. Without --on, `score_pair_file` streams the pairs through the metrics in
this process, and `score_system_files` scores several systems; with --on, `score_with_workers`
distributes the pairs. They return a `ScoreSummary` or a `SystemsSummary`, the result to print.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import (
    as_json,
    current_command,
    print_first,
    print_message,
    print_output,
)
from evenmatch.data.files import display_path
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file, read_system_files
from evenmatch.data.scores import (
    SCORE_SUFFIXES,
    LayoutStyle,
    ScoredPair,
    ScoreLayout,
    is_score_file,
    replace_file,
    score_writer,
    scored_pairs,
)
from evenmatch.data.tables import (
    page_width,
    table_to_tsv,
    wrap_prose,
)
from evenmatch.distributed.driver import RunMetrics, manifest_header
from evenmatch.distributed.run import ScoreFilesResult, resumable_run, score_files
from evenmatch.distributed.worker import PACKED_SUFFIX, merge_tallies, tally_record
from evenmatch.errors import DataError, InputError
from evenmatch.evaluation.compare import score_systems
from evenmatch.registry import CallContext
from evenmatch.registry.opening import count_idf
from evenmatch.reports.score_summary import ScoreSummary, SystemsSummary, WorstPairs
from evenmatch.scoring.inputs import HashedPairs, make_run
from evenmatch.scoring.metric import as_metric, select_metrics
from evenmatch.scoring.streaming import (
    STREAM_CHUNK_PAIRS,
    RunningMean,
    count_flags,
    score_stream,
)
from evenmatch.types import Pair, Run

_EXAMPLES = 3  # texts from each end of the ranking in a report, if --worst is not given

_RESULT_SUFFIXES = (*opt.PAGE_SUFFIXES, ".json", ".tex", ".txt")


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
    files: list[str] | None = opt.argument(
        None,
        "FILE",
        "A .jsonl, .tsv, .csv or .parquet file with the fields candidate (or prediction), "
        "references (or reference) and optionally source; - reads JSONL from standard input. With "
        "--on, also a folder of .jsonl and .parquet files.",
    ),
    sources: str = opt.SOURCES,
    segments: bool = opt.flag(False, "--segments", "Also print the score of every pair."),
    worst: int = opt.count(
        0,
        "Also print the N worst pairs by the first metric, with their texts. A report shows as "
        "many of the worst and of the best.",
        least=0,
    ),
    scale: float = opt.SCALE,
    printing: opt.OutputOptions,
    out: str = opt.value(
        "",
        "--out -o FILE",
        "Also write a file. With the suffix .jsonl, .tsv, .csv or .parquet: the scores of every "
        "pair, with the other fields of its record. With .html: a report with plots, the worst and "
        "the best texts. With .json, .tex or .txt: the printed result.",
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
    file = _single_file(files or [])
    scaling.check()
    if worst and printing.format in ("tsv", "latex"):
        raise typer.BadParameter("--worst prints texts; use --format text or json, or --out x.html")
    opt.check_scale(scale)
    result: ScoreSummary | SystemsSummary
    if scaling.on is not None:
        check_worker_usage(
            file,
            out,
            segments=segments or bool(worst),
            lines=bool(candidates or references or sources),
        )
        result = score_with_workers(
            file, out, metric, running, scaling, resume, layout=layout, scale=scale
        )
    else:
        _check_out(out)
        if resume and not is_score_file(out):
            raise typer.BadParameter("--resume needs --out: a .jsonl, .tsv, .csv or .parquet file")
        _check_input(file, candidates or [], references or [], sources)
        systems = opt.system_files(candidates or [])
        with running.settings() as settings:
            run = make_run(**settings)
            wanted, reasons = select_metrics(metric, run)
            page = out.lower().endswith(opt.PAGE_SUFFIXES)
            shared: dict[str, Any] = {
                "keep": segments or page,
                "worst": worst,
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
                texts: list[Pair] | None = [] if page else None
                result = score_pair_file(
                    wanted, pairs, run, chunk_size=scaling.shard_rows, texts=texts, **shared
                )
        result = dataclasses.replace(result, absent=reasons)
        if out and not is_score_file(out):
            given = None if len(systems) > 1 else texts
            _write_result(result, out, given, examples=worst or _EXAMPLES)
    if not segments:
        result = result.without_rows()
    print_output(_format(result, printing.format))
    print_warnings(result)


def _write_result(
    result: ScoreSummary | SystemsSummary, out: str, texts: list[Pair] | None, *, examples: int
) -> None:
    """Write the result as a report, or as it is printed, by the suffix of `out`."""
    if out.lower().endswith(opt.PAGE_SUFFIXES):
        from evenmatch.reports.results import write_report  # slow to import

        path = write_report(
            result.document(), out, pairs=texts, examples=examples, command=current_command()
        )
        print_message(f"wrote {path}")
        return
    with page_width(0):
        replace_file(out, _format(result, opt.OUT_FORMATS[Path(out).suffix.lower()]) + "\n")


def _format(result: ScoreSummary | SystemsSummary, style: opt.OutputFormat) -> str:
    match style:
        case "json":
            return as_json(result.document())
        case "tsv":
            return table_to_tsv(result.exact_table())
        case "latex":
            return result.to_latex()
    return wrap_prose(str(result))


def _single_file(files: list[str]) -> str:
    if len(files) > 1:
        raise typer.BadParameter(
            "give one FILE of records; for text files, name them: -c CANDIDATES -r REFERENCES"
        )
    return files[0] if files else ""


def _check_input(file: str, candidates: list[str], references: list[str], sources: str) -> None:
    if file and (candidates or references or sources):
        how = "write -c or -r before each text file"
        if "=" in file:
            how = 'settings belong to the metric: -m "bertscore(layer=9)"'
        raise typer.BadParameter(f"give either FILE, here {file}, or -c and -r, not both; {how}")
    if candidates and not references:
        raise typer.BadParameter(
            "-r REFERENCES is missing: give a file of references, one per line"
        )
    if not file and not candidates:
        raise typer.BadParameter("nothing to score: give FILE, or -c CANDIDATES and -r REFERENCES")


def _check_out(out: str) -> None:
    """Reject a file of unknown kind, or in a folder that does not exist."""
    if not out or is_score_file(out):
        return
    if not out.lower().endswith(_RESULT_SUFFIXES):
        known = ", ".join([*SCORE_SUFFIXES, *(s for s in _RESULT_SUFFIXES if s != ".htm")])
        raise typer.BadParameter(f"unknown file type of {out}; the suffix must be one of {known}")
    opt.check_folder(out)


def check_worker_usage(file: str, out: str, *, segments: bool, lines: bool) -> None:
    """Reject options that cannot be combined with --on."""
    if lines or not file:
        raise typer.BadParameter("--on needs FILE or a folder, not -c and -r")
    if segments:
        raise typer.BadParameter(
            "with --on the scores of every pair are written to --out; remove --segments and --worst"
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
    worst: int = 0,
    texts: list[Pair] | None = None,
    out: str = "",
    layout: ScoreLayout = ScoreLayout(),
    chunk_size: int = STREAM_CHUNK_PAIRS,
) -> ScoreSummary:
    """Score a file of pairs; keep the score of every pair if `keep`, write it if `out` is given.

    The pairs are appended to `texts` if that is a list. With `out`, an interrupted run is
    continued; `chunk_size` is the number of pairs between two savings.
    """
    names = list(dict.fromkeys(metrics))
    context = CallContext(run, pairs if pairs.rereadable else iter(pairs))
    parts = {name: count_idf(as_metric(name), context) for name in names}
    tallies: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    single: list[RunningMean] = []
    flagged: Counter[str] = Counter()
    kept: list[ScoredPair] = []
    lowest = WorstPairs(worst, names)
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
            if keep or write or worst:
                scored = list(scored_pairs(rows, names, found, chunk))
                kept += scored if keep else []
                lowest = lowest.add(scored, chunk)
                if write:
                    write(scored)
            if texts is not None:
                texts += chunk
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
        worst=lowest.scaled(layout.scale),
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
    worst: int = 0,
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
        lowest = WorstPairs(worst, names)
        for system, texts in candidates.items():
            found = [each.systems[system].scores for each in scored]
            pairs = [
                Pair(text, tuple(own), fields={"system": system})
                for text, own in zip(texts, several, strict=True)
            ]
            rows = list(scored_pairs(0, names, found, pairs)) if keep or out or worst else []
            lowest = lowest.add(rows, pairs)
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
    return SystemsSummary(summaries, worst=lowest.scaled(layout.scale))


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
            if "truncated" in summary.flagged:
                print_message(
                    "long='windows' reads texts to their end, as in f_disc(long='windows')"
                )
    for name, why in result.absent.items():
        print_message(f"{name} cannot run: {why}")
