"""The command line: its commands in their order."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from skdice._version import __version__
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli.compare import compare
from skdice.cli.convert import convert
from skdice.cli.evaluate import evaluate
from skdice.cli.export import export
from skdice.cli.imbalance import imbalance
from skdice.cli.next import next
from skdice.cli.predict import predict
from skdice.cli.suspects import suspects
from skdice.cli.train import train
from skdice.cli.tune import tune

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

    skdice imbalance train.conll

    skdice train train.conll --loss dsc --out model
    """
    _common.DEBUG = debug


for function in (
    *(imbalance, train, predict, convert, evaluate),
    *(suspects, next, export, compare, tune),
):
    summary = (function.__doc__ or "").split("\n\n")[0]  # whole, in the list of commands
    register = app.command(cls=options.Command, short_help=summary)
    register(options.grouped(function))
