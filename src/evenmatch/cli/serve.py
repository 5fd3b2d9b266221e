"""evenmatch serve: scores, rewards and the viewer over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenmatch.cli.console import print_message
from evenmatch.cli.options import RunOptions, count_option, expand_option_groups, metric_option
from evenmatch.server.security import Limits
from evenmatch.server.serve import serve as run_server

_DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class LimitOptions:
    """How much a request may ask for, as options."""

    max_bytes: Annotated[int, count_option("The largest body of a request.")] = (
        _DEFAULT_LIMITS.max_bytes
    )
    max_texts: Annotated[int, count_option("The most texts in a request.", least=2)] = (
        _DEFAULT_LIMITS.max_texts
    )
    max_length: Annotated[int, count_option("The most characters in a text.")] = (
        _DEFAULT_LIMITS.max_text_length
    )
    max_waiting: Annotated[int, count_option("The most pairs that wait their turn.")] = (
        _DEFAULT_LIMITS.max_queued_pairs
    )
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="How long a request may take.")
    ] = _DEFAULT_LIMITS.timeout

    def limits(self) -> Limits:
        """The limits of the server."""
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
            "A metric to offer, by name or spec; requests can name no other.",
            "the usual ones that can run here",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; a public one needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
    ] = 8000,
    token: Annotated[
        str,
        typer.Option(
            metavar="TOKEN",
            envvar="EVENMATCH_TOKEN",
            help="What requests must carry: Authorization: Bearer TOKEN.",
            show_default=False,
        ),
    ] = "",
    *,
    bounds: LimitOptions,
    running: RunOptions,
) -> None:
    """Answer requests for scores, rewards and alignments; show the viewer at /."""
    with running.settings() as settings:
        run_server(
            metric or (),
            host=host,
            port=port,
            token=token,
            limits=bounds.limits(),
            tell=print_message,
            **settings | {"progress": None},
        )
