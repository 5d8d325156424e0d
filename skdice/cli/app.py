"""The command line: its commands in their order."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from skdice._version import __version__
from skdice.cli import _common
from skdice.cli.compare import compare
from skdice.cli.convert import convert
from skdice.cli.evaluate import evaluate
from skdice.cli.predict import predict
from skdice.cli.train import train

# Commands of earlier versions, and what takes their place.
_GONE = {
    "imbalance": "skdice train prints it; in Python, skdice.inspection.imbalance",
    "tune": "search in Python, by skdice.model_selection.LossSearchCV",
    "suspects": "list them in Python, by skdice.inspection.suspect_labels",
    "next": "list them in Python, by skdice.inspection.next_to_label",
    "export": "export in Python, by skdice.export.export_onnx",
}


class _Commands(TyperGroup):
    """Commands, of which some are gone."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _GONE:
            raise typer.BadParameter(f"the command {args[0]!r} is gone: {_GONE[args[0]]}")
        return super().resolve_command(ctx, args)


class _Command(TyperCommand):
    """A command whose errors are one paragraph."""

    def invoke(self, ctx: Any) -> Any:
        with _common.readable_errors(ctx.command):
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"skdice {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, Option(help="Show tracebacks.")] = False,
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Transformers for text where the positive class is rare.

    For example:

    skdice compare

    skdice train train.conll --loss dsc --out model

    skdice evaluate model test.conll
    """
    _common.DEBUG = debug


for function in (train, predict, evaluate, compare, convert):
    summary = (function.__doc__ or "").split("\n\n")[0]  # whole, in the list of commands
    app.command(cls=_Command, short_help=summary)(function)
