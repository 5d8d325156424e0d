"""Messages of errors and warnings are short enough to be read at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import skdice

ROOT = Path(skdice.__file__).parent
MOST = 40


def text_of(node: ast.AST) -> str:
    """The text of an expression, a word in place of each value that it shows."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(v) if isinstance(v, ast.Constant) else "x" for v in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp):
        return max(text_of(node.body), text_of(node.orelse), key=len)
    return ""


def messages(tree: ast.AST) -> Iterator[str]:
    """The first argument of each error that is made and of each call of `warn`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = ast.unparse(node.func).rpartition(".")[2]
            if name == "warn" or name.endswith(("Error", "BadParameter")):
                yield text_of(node.args[0])


def n_words(message: str) -> int:
    """Words of a message; a shape such as ``(N, L, C)`` is one."""
    return len(re.sub(r"\([A-Z, ]*\)", "x", message).split())


def test_no_message_has_more_than_forty_words():
    counts = {
        message: (path.name, n)
        for path in ROOT.rglob("*.py")
        for message in messages(ast.parse(path.read_text("utf-8")))
        if (n := n_words(message)) > MOST
    }
    assert not counts
