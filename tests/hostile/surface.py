"""The public surface: every function, constructor and method that takes arguments."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from tests.hostile.values import Domain

ROOT = Path(__file__).parents[2]


@dataclass
class Target:
    """A public function, constructor or method."""

    name: str
    function: Callable[..., Any]
    owner: type | None = None  # of a constructor or a method
    attribute: str = ""  # of a method

    @property
    def is_method(self) -> bool:
        return bool(self.attribute)

    @property
    def short(self) -> str:
        return self.name.removeprefix("skdice.")

    @functools.cached_property
    def domains(self) -> list[Domain]:
        """Its parameters; those of ``**options: Unpack[...]`` one by one."""
        found = []
        for p in inspect.signature(self.function).parameters.values():
            if p.name in ("self", "cls"):
                continue
            if p.kind is p.VAR_POSITIONAL and p.annotation is p.empty:
                continue
            if p.kind is not p.VAR_KEYWORD:
                found.append((p.name, str(p.annotation), p.default))
                continue
            unpacked = re.match(r"(?:typing\.)?Unpack\[(\w+)\]", str(p.annotation))
            if unpacked:
                options = vars(sys.modules[self.function.__module__]).get(unpacked[1])
                hints = typing.get_type_hints(options) if options else {}
                lines = {name: str(kind) for name, kind in hints.items()}
                found += [(name, line, None) for name, line in lines.items() if name != "problem"]
        return [Domain(*entry, self._docs.get(entry[0], "")) for entry in found]

    @property
    def _docs(self) -> dict[str, str]:
        docs: dict[str, str] = {}
        for thing in (self.owner, self.function):
            for names, text in re.findall(
                r"^\*{0,2}(\w[\w, ]*) : (.+)$", inspect.getdoc(thing) or "", re.M
            ):
                docs |= dict.fromkeys(names.split(", "), text)
        return docs


def packages() -> list[str]:
    """The modules that the API reference documents; tests/test_docs.py holds it to be whole."""
    return re.findall(r"currentmodule:: (\S+)", (ROOT / "docs" / "api.md").read_text())


# Names without a valid call, and why.
NO_CALL = {
    "skdice.model_selection.adapt_prior": "needs one of two options; refusals are in test_prior",
    "skdice.text.Entity": "a named tuple, which checks nothing",
    "skdice.losses.Loss": "the base has no kernel; each loss is attacked by itself",
    "skdice.DiceMRCTagger.partial_fit": "no instance has it: its head has no classes",
    "skdice.DiceQuestionAnswerer.partial_fit": "no instance has it: its head has no classes",
    "skdice.DiceMRCTagger.from_transformers": "refuses every folder, since no model has its heads",
    "skdice.model_selection.LossSearchCV.predict_log_proba": "no estimator of skdice has it",
    "skdice.model_selection.LossSearchCV.transform": "no estimator of skdice with a loss has it",
}


def targets() -> list[Target]:
    """Every public callable that takes arguments, once."""
    found: dict[Any, Target] = {}
    for package in packages():
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", None) or vars(module):
            thing = getattr(module, name)
            if name[0] == "_" or not _is_ours(thing) or not callable(thing):
                continue
            if inspect.isclass(thing) and issubclass(thing, Warning):  # checks nothing
                continue
            entries = [
                Target(f"{package}.{name}", thing, thing if inspect.isclass(thing) else None)
            ]
            if inspect.isclass(thing):
                entries += _methods(thing, f"{package}.{name}")
            for entry in entries:
                if entry.domains and not any(
                    f"{entry.name}.".startswith(f"{name}.") for name in NO_CALL
                ):
                    found.setdefault(entry.name if entry.is_method else entry.function, entry)
    return list({target.name: target for target in found.values()}.values())


def _methods(cls: type, qualified: str) -> Iterator[Target]:
    for name in dir(cls):
        method = getattr(cls, name, None)
        if not inspect.isroutine(method) or not _is_ours(method):
            continue
        static = inspect.getattr_static(cls, name)
        if isinstance(static, staticmethod):  # a function with a name
            continue
        if name == "partial_fit" and not getattr(getattr(cls, "task", None), "has_classes", True):
            continue  # scikit-learn's `available_if` hides it
        hidden = name.startswith("_") and name != "__call__"
        # A loss has methods for skdice's own engine, which have no section of parameters.
        documented = "Parameters\n" in (inspect.getdoc(method) or "") or not issubclass(
            cls, nn.Module
        )
        if not hidden and documented and name not in ("set_params", "get_params"):
            yield Target(f"{qualified}.{name}", method, cls, name)


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("skdice")
