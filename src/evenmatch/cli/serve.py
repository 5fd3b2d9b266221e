"""evenmatch serve: scores, rewards and the viewer over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Running, count, metric_option
from evenmatch.cli.output import tell
from evenmatch.uses.serve.limits import Limits
from evenmatch.uses.serve.running import serve as run_server

_USUAL = Limits()


@dataclass(frozen=True)
class Bounds:
    """How much a request may ask for, as options."""

    max_bytes: Annotated[int, count("The largest body of a request.")] = _USUAL.most_bytes
    max_texts: Annotated[int, count("The most texts in a request.", least=2)] = _USUAL.most_texts
    max_length: Annotated[int, count("The most characters in a text.")] = _USUAL.longest_text
    max_waiting: Annotated[int, count("The most pairs that wait their turn.")] = _USUAL.most_waiting
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="How long a request may take.")
    ] = _USUAL.timeout

    def limits(self) -> Limits:
        """The limits of the server."""
        return Limits(
            most_bytes=self.max_bytes,
            most_texts=self.max_texts,
            longest_text=self.max_length,
            longest_aligned=min(self.max_length, _USUAL.longest_aligned),
            most_waiting=self.max_waiting,
            timeout=self.timeout,
        )


@takes_option_groups()
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
    bounds: Bounds,
    running: Running,
) -> None:
    """Answer requests for scores, rewards and alignments; show the viewer at /."""
    with running.settings() as settings:
        run_server(
            metric or (),
            host=host,
            port=port,
            token=token,
            limits=bounds.limits(),
            tell=tell,
            **settings | {"progress": None},
        )
