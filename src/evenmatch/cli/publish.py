"""Commands that publish results: report writes an HTML page, serve starts an HTTP server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import (
    RunOptions,
    argument,
    count_option,
    expand_option_groups,
    metric_option,
    option,
    optional_option,
)
from evenmatch.data.pairs import LineAlignedFiles, PairFile, open_pair_file
from evenmatch.reports.page import check_page_path
from evenmatch.reports.results import read_result, write_report
from evenmatch.server.allow_list import DEFAULT_METRICS
from evenmatch.server.security import Limits
from evenmatch.server.serve import serve as run_server

_DEFAULT_LIMITS = Limits()


def report(
    result: Annotated[
        str,
        argument(
            "RESULT.json",
            "JSON output of score, compare, meta, audit, keyphrases, tune or study (--json).",
        ),
    ],
    out: Annotated[
        str,
        option(
            "PAGE.html",
            "HTML file to write.",
            "--out",
            "-o",
            default="RESULT.html in the same folder",
        ),
    ] = "",
    texts: Annotated[
        str,
        optional_option(
            "FILE",
            "For results of score: the file that was scored. The report then shows the worst and "
            "the best texts with their alignments.",
        ),
    ] = "",
    candidates: Annotated[
        str,
        optional_option(
            "FILE",
            "Like --texts, but for line-aligned files: the candidates.",
            "--candidates",
            "-c",
        ),
    ] = "",
    references: Annotated[
        list[str] | None,
        optional_option(
            "FILE",
            "Like --texts, but for line-aligned files: the references; may be given several times.",
            "--references",
            "-r",
        ),
    ] = None,
    examples: Annotated[
        int,
        count_option(
            "Number of texts to show from each end of the ranking: N worst and N best.", least=0
        ),
    ] = 3,
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

    max_bytes: Annotated[int, count_option("Maximum size of a request body in bytes.")] = (
        _DEFAULT_LIMITS.max_bytes
    )
    max_texts: Annotated[
        int, count_option("Maximum number of texts in a request, references included.", least=2)
    ] = _DEFAULT_LIMITS.max_texts
    max_length: Annotated[int, count_option("Maximum number of characters in a text.")] = (
        _DEFAULT_LIMITS.max_text_length
    )
    max_waiting: Annotated[
        int,
        count_option(
            "Maximum number of queued pairs over all requests; further requests are rejected."
        ),
    ] = _DEFAULT_LIMITS.max_queued_pairs
    timeout: Annotated[float, option("SECONDS", "Time limit of a request.", least=0.001)] = (
        _DEFAULT_LIMITS.timeout
    )

    def limits(self) -> Limits:
        """Return the limits as the server takes them."""
        return Limits(
            max_bytes=self.max_bytes,
            max_texts=self.max_texts,
            max_text_length=self.max_length,
            max_aligned_length=min(self.max_length, _DEFAULT_LIMITS.max_aligned_length),
            max_queued_pairs=self.max_waiting,
            timeout=self.timeout,
        )


@expand_option_groups()
def serve(
    metric: Annotated[
        list[str] | None,
        metric_option(
            "Metric to serve, by name or spec; may be given several times. Requests for other "
            "metrics are rejected.",
            f"those of {', '.join(DEFAULT_METRICS)} that can run on this machine",
        ),
    ] = None,
    host: Annotated[
        str, option("ADDRESS", "Address to listen on; a public address requires --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="N", help="Port to listen on; 0 selects a free port."
        ),
    ] = 8000,
    token: Annotated[
        str,
        typer.Option(
            metavar="TOKEN",
            envvar="EVENMATCH_TOKEN",
            help="Secret that clients must send as header: Authorization: Bearer TOKEN.",
            show_default=False,
        ),
    ] = "",
    *,
    bounds: LimitOptions,
    running: RunOptions,
) -> None:
    """Start an HTTP server for scores and rewards.

    The server also returns alignments, and shows the alignment viewer at /.
    """
    with running.settings() as settings:
        run_server(
            metric or (),
            host=host,
            port=port,
            token=token,
            limits=bounds.limits(),
            log=print_message,
            **settings | {"progress": None},
        )
