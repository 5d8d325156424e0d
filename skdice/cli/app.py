"""The command line: its commands in their order."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand

from skdice._version import __version__
from skdice.cli import _common
from skdice.cli.compare import compare
from skdice.cli.convert import convert
from skdice.cli.evaluate import evaluate
from skdice.cli.predict import predict
from skdice.cli.train import train


class _Command(TyperCommand):
    """A command whose errors are one paragraph."""

    def invoke(self, ctx: Any) -> Any:
        with _common.readable_errors(ctx.command):
            return super().invoke(ctx)


app = typer.Typer(
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
