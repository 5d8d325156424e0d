"""The public names of skdice, and what pages say of them. The tests read it too."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
EXAMPLES = sorted(DOCS.parent.glob("examples/*/plot_*.py"))
PACKAGES = (
    "skdice", "skdice.text", "skdice.losses", "skdice.model_selection",
    "skdice.resampling", "skdice.tags", "skdice.metrics", "skdice.inspection", "skdice.datasets",
    "skdice.export",
)  # fmt: skip
GUIDE = ("searching", "models", "speed")  # pages of the guide that lie outside its folder


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public class, function and scorer by its full name, each once."""
    found: dict[str, Any] = {}
    seen = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]:
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("skdice")
            kind = inspect.isclass(thing) or inspect.isfunction(thing) or name.endswith("_scorer")
            if ours and kind and id(thing) not in seen:
                seen.add(id(thing))
                found[f"{package}.{name}"] = thing
    return found


@functools.cache
def targets() -> dict[str, str]:
    """What inline code may say, and the full name that it means: a short name, a loss by name."""
    from skdice.losses import LOSSES

    short = {name.rpartition(".")[2]: name for name in public_names()}
    named = {name: short[cls.__name__] for name, cls in LOSSES.items() if cls.__name__ in short}
    return {**named, **{name: name for name in public_names()}, **short}


def target_of(code: str) -> str | None:
    """The full name that inline code stands for: ``DiceLoss``, ``DiceLoss(...)``, ``"ce_dice"``."""
    quoted = re.fullmatch(r"(?:loss=)?[\"'](\w+)[\"']", code)
    if quoted:
        return targets().get(quoted[1])
    called = re.fullmatch(r"([\w.]+?)(\(.*\))?", code, re.S)
    if called is None:
        return None
    name = called[1]
    if name not in targets() and "." in name:
        name = name.rpartition(".")[0]  # a method
    return targets().get(name)


def code_of(page: Path) -> str:
    """The Python that a page shows."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        return text
    blocks = re.findall(r"^```+(?:python|\{run\}.*)\n(.*?)^```", text, re.S | re.M)
    return "\n".join(re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.M) for block in blocks)


def used_in(code: str) -> set[str]:
    """The full names of what some Python uses, beyond importing it."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set()
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    words |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
              if isinstance(node.value, str) and "_" not in node.value[:1]}  # fmt: skip
    return {targets()[word] for word in words if word in targets()}


def guide_pages() -> list[Path]:
    """The pages that teach: the start, the guide and the examples."""
    pages = [DOCS / "start.md", *(DOCS / f"{name}.md" for name in GUIDE)]
    pages += [page for page in sorted((DOCS / "guide").glob("*.md")) if page.stem != "index"]
    return pages + EXAMPLES


def mentioned_in(text: str) -> set[str]:
    """The full names of what the prose of a page names in inline code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return {target_of(code) for code in re.findall(r"`([^`\n]+)`", prose)} - {None}
