"""How tests run a command, and read what it says."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner, Result

from skdice.cli.app import app


def run(*args: Any, text: str | bytes | None = None, **how: Any) -> Result:
    """Run a command with its arguments, and a text as its standard input."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=text, **how)


def said(result: Result) -> str:
    """The output of a command as one line, without the frames of tables."""
    return " ".join(result.output.replace("\u2502", "").split())
