"""Commands that publish results: report writes an HTML page, serve starts an HTTP server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file
from evenmatch.reports.page import check_page_path
from evenmatch.reports.results import read_result, write_report
from evenmatch.server.allow_list import DEFAULT_METRICS
from evenmatch.server.security import Limits
from evenmatch.server.serve import serve as run_server


def report(
    result: str = opt.argument(
        opt.REQUIRED,
        "RESULT.json",
        "JSON output of score, compare, meta, audit, keyphrases, tune or study (--json).",
    ),
    out: str = opt.value(
        "", "--out -o PAGE.html", "HTML file to write.", shown="RESULT.html in the same folder"
    ),
    texts: str = opt.value(
        "",
        "FILE",
        "For results of score: the file that was scored. The report then shows the worst and the "
        "best texts with their alignments.",
    ),
    candidates: str = opt.value(
        "", "--candidates -c FILE", "Like --texts, but for line-aligned files: the candidates."
    ),
    references: list[str] | None = opt.value(
        None,
        "--references -r FILE",
        "Like --texts, but for line-aligned files: the references; may be given several times.",
    ),
    examples: int = opt.count(
        3, "Number of texts to show from each end of the ranking: N worst and N best.", least=0
    ),
) -> None:
    """Write an HTML report of a result.

    The page has sortable tables, plots, examples and signatures. It is self-contained: it loads no
    other files.
    """
    target = check_page_path(out or Path(result).with_suffix(".html"))
    given = _open_texts(texts, candidates, references or [])
    pairs = None if given is None else list(given)
    written = write_report(read_result(result), target, pairs=pairs, examples=examples)
    print_message(f"wrote {written}")


def _open_texts(file: str, candidates: str, references: list[str]) -> PairFile | None:
    if file and (candidates or references):
        raise typer.BadParameter("give either --texts, or -c and -r, not both")
    if file:
        return open_pair_file(file)
    if bool(candidates) != bool(references):
        raise typer.BadParameter("give both -c and -r: the candidates and their references")
    return LineAlignedFiles(candidates, tuple(references)) if candidates else None


@dataclass(frozen=True)
class LimitOptions:
    """Options that limit requests."""

    max_bytes: int = opt.count(Limits.max_bytes, "Maximum size of a request body in bytes.")
    max_texts: int = opt.count(
        Limits.max_texts, "Maximum number of texts in a request, references included.", least=2
    )
    max_text_length: int = opt.value(
        Limits.max_text_length, "--max-length N", "Maximum number of characters in a text.", least=1
    )
    max_queued_pairs: int = opt.value(
        Limits.max_queued_pairs,
        "--max-waiting N",
        "Maximum number of queued pairs over all requests; further requests are rejected.",
        least=1,
    )
    max_cells: int = opt.count(
        Limits.max_cells, "Maximum number of cells (units × units) of a pair that is scored."
    )
    max_connections: int = opt.count(Limits.max_connections, "Maximum number of open connections.")
    head_timeout: float = opt.value(
        Limits.head_timeout, "SECONDS", "Time limit for the head of a request.", least=0.001
    )
    timeout: float = opt.value(Limits.timeout, "SECONDS", "Time limit of a request.", least=0.001)


@opt.expand_option_groups()
def serve(
    metric: list[str] | None = opt.metric(
        None,
        "Metric to serve, by name or spec; may be given several times. Requests for other metrics "
        "are rejected.",
        f"those of {', '.join(DEFAULT_METRICS)} that can run on this machine",
    ),
    host: str = opt.value(
        "127.0.0.1", "ADDRESS", "Address to listen on; a public address requires --token."
    ),
    port: int = typer.Option(
        8000, min=0, max=65535, metavar="N", help="Port to listen on; 0 selects a free port."
    ),
    token: str = typer.Option(
        "",
        metavar="TOKEN",
        envvar="EVENMATCH_TOKEN",
        help="Secret that clients must send as header: Authorization: Bearer TOKEN.",
        show_default=False,
    ),
    allow_host: list[str] | None = opt.repeatable(
        None,
        "--allow-host NAME",
        "Name or address by which clients reach the server, as in their Host header. Loopback "
        "names and --host are always allowed",
    ),
    *,
    bounds: LimitOptions,
    running: opt.RunOptions,
) -> None:
    """Start an HTTP server for scores and rewards.

    The server also returns alignments, and shows the alignment viewer at /.
    """
    aligned_length = min(bounds.max_text_length, Limits.max_aligned_length)
    with running.settings() as settings:
        run_server(
            metric or (),
            host=host,
            port=port,
            token=token,
            allow_hosts=allow_host or (),
            limits=Limits(max_aligned_length=aligned_length, **asdict(bounds)),
            log=print_message,
            **settings | {"progress": None},
        )
