"""evenmatch serve: an HTTP server for scores, rewards and the alignment viewer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import RunOptions, count_option, expand_option_groups, metric_option
from evenmatch.server.allow_list import DEFAULT_METRICS
from evenmatch.server.security import Limits
from evenmatch.server.serve import serve as run_server

_DEFAULT_LIMITS = Limits()


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
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Time limit of a request.")
    ] = _DEFAULT_LIMITS.timeout

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
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; a public address requires --token."
        ),
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
