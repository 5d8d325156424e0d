"""Hostile values for every parameter of every public callable, found by introspection.

`targets()` lists the public functions, constructors and methods; `attack()` makes a valid call of
one, replaces one argument after another by values that it was not made for, and counts:

refused   An error; nothing has changed. Whose words it has is no matter here.
silent    A result though the value is plainly not legal for this parameter, or a result that holds
          NaN. What is legal is read from the annotation and the docstring: see `Domain`.
changed   An object, an argument, a file or the state of the process differs after a refusal; or the
          data, or a model that the call does not train, after a call that succeeded.
legal     A result for a value that the parameter's domain holds, or may hold.

An estimator keeps what its constructor gets and checks it in `fit`, as scikit-learn asks. So its
constructor is called together with `fit` (`fit_resample` for a sampler).

Arguments of the valid call come from `MAKERS`, by a parameter's name and by the kind of data (tags,
labels, answers, ...), which is tried out. A public name for which no valid call can be made is an
error, until there is a maker for its parameter.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator

from tests.hostile.makers import QUICK, Makers
from tests.hostile.surface import Target
from tests.hostile.values import MAY_BE_NAN, ROWS, VALUES, Domain

PARTNERS = {"X_val": "y_val", "y_val": "X_val"}
PLAIN = frozenset((type(None), bool, int, str, bytes))
TRAINING = ("fit", "partial_fit", "fit_resample", "tune_threshold", "prepare")


def mark(thing: Any, seen: dict[int, int] | None = None, depth: int = 0) -> Any:
    """A value that is equal as long as nothing in `thing` has changed."""
    seen = {} if seen is None else seen
    if thing is None or isinstance(thing, (bool, int, str, bytes, complex, Path, type)):
        return thing
    if isinstance(thing, float):
        return repr(thing)
    if id(thing) in seen or depth > 60:
        return ("again", seen.get(id(thing)))
    seen[id(thing)] = len(seen)

    def inner(value: Any) -> Any:
        return mark(value, seen, depth + 1)

    if isinstance(thing, torch.Tensor):
        data = thing.detach().cpu()
        return (str(data.dtype), tuple(data.shape), data.contiguous().numpy().tobytes())
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return (str(thing.dtype), thing.shape, thing.tobytes())
    if isinstance(thing, dict):
        # Most are plain: without a call it takes half the time.
        keys = [k if type(k) in PLAIN else inner(k) for k in thing]
        return ("dict", keys, [v if type(v) in PLAIN else inner(v) for v in thing.values()])
    if isinstance(thing, (list, tuple, np.ndarray)):
        return (type(thing).__name__, [v if type(v) in PLAIN else inner(v) for v in thing])
    if isinstance(thing, (set, frozenset)):
        return ("set", sorted(map(repr, thing)))
    if isinstance(thing, (pd.DataFrame, pd.Series)):
        return repr(thing.to_dict())
    held = getattr(thing, "__dict__", None)
    if not held or inspect.isroutine(thing) or inspect.ismodule(thing):
        return type(thing).__name__
    return (type(thing).__name__, inner(held))


def process_state() -> dict[str, Any]:
    """What belongs to the user's process, and not to a call."""
    import matplotlib
    import matplotlib.pyplot as plt
    from transformers.utils import logging

    return {
        "random": random.getstate(),
        "numpy": mark(np.random.get_state()),
        "torch": mark(torch.get_rng_state()),
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "rcParams": dict(dict.items(matplotlib.rcParams)),  # as they are: reading checks each
        "figures": plt.get_fignums(),
        "verbosity": (logging.get_verbosity(), logging.is_progress_bar_enabled()),
        "numpy errors": np.geterr(),
    }


def files(folder: Path | str) -> list[Any]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append((entry.path, entry.stat().st_size))
            if entry.is_dir():
                found += files(entry.path)
    return sorted(found)


def holds_nan(result: Any, depth: int = 0) -> bool:
    """Whether numbers in a result are NaN."""
    if isinstance(result, (float, np.floating)):
        return bool(result != result)
    if isinstance(result, torch.Tensor):
        return bool(result.is_floating_point() and torch.isnan(result).any())
    if isinstance(result, np.ndarray) and result.dtype.kind == "f":
        return bool(np.isnan(result).any())
    if depth < 3 and isinstance(result, dict):
        return any(holds_nan(value, depth + 1) for value in result.values())
    if depth < 3 and isinstance(result, (list, tuple)):
        return any(holds_nan(value, depth + 1) for value in result)
    return False


# ---- the attack


@dataclass
class Result:
    """One hostile call."""

    target: str
    parameter: str
    value: str
    outcome: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:8} {self.target}({self.parameter}={self.value}): {self.detail}"


@dataclass
class Harness:
    """Makes valid calls, and hostile ones out of them."""

    folder: Path
    backbone: str
    makers: Makers = field(init=False)
    kinds: dict[str, str] = field(default_factory=dict)
    instances: dict[Any, Any] = field(default_factory=dict)
    marks: dict[Any, Any] = field(default_factory=dict)
    around: dict[str, Any] = field(default_factory=dict)
    trained: Any = None

    def __post_init__(self) -> None:
        self.makers = Makers(self.folder, self.backbone)

    # ---- valid calls

    def arguments(self, target: Target, kind: str) -> dict[str, Any]:
        """Required arguments, and optional ones that keep a call short."""
        short = target.name.split(".")[-2:] if target.is_method else target.name.split(".")[-1:]
        owners = [".".join(short), *reversed(short)]
        base = {}
        for domain in target.domains:
            name = domain.name
            special = [owner for owner in owners if self.makers.knows(f"{owner}.{name}")]
            required = domain.default is inspect.Parameter.empty
            if special:
                base[name] = self.makers.find(f"{special[0]}.{name}", kind)
            elif name in QUICK or name in ("y", "backbone") or required:
                if not self.makers.knows(name):
                    raise LookupError(
                        f"no maker for the parameter {name!r} of {target.name}: add a_{name} to "
                        "tests/hostile/makers.py"
                    )
                base[name] = self.makers.find(name, kind)
        return base

    def call(self, target: Target, arguments: dict[str, Any], kind: str) -> Any:
        if target.is_method and not inspect.ismethod(target.function):
            instance = self.instance(target, kind)
            return self._given(getattr(instance, target.attribute), arguments)
        made = self._given(target.function, arguments)
        if not target.is_method and isinstance(made, (BaseEstimator,)) and hasattr(made, "fit"):
            X, y = self.makers.a_X(kind), self.makers.a_y(kind)
            if hasattr(made, "fit_resample"):
                return made.fit_resample(X, y)
            made.fit(X, y)
        return made

    @staticmethod
    def _given(function: Any, arguments: dict[str, Any]) -> Any:
        positional = [
            arguments.pop(p.name)
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) and p.name in arguments
        ]
        result = function(*positional, **arguments)
        # Nothing of a lazy result has been computed or refused yet.
        return list(result) if inspect.isgenerator(result) else result

    def instance(self, target: Target, kind: str) -> Any:
        """An object to call a method of, fitted if it can be; a copy where it will be trained."""
        cls, key = target.owner, (target.owner, kind)
        if key not in self.instances:
            made = self._given(cls, self.arguments(Target(f".{cls.__name__}", cls, cls), kind))
            if hasattr(made, "fit"):
                made.fit(self.makers.a_X(kind), self.makers.a_y(kind))
            elif hasattr(made, "prepare"):
                made.prepare(self.makers.find("class_counts", kind))
            self.instances[key] = made
        if target.attribute in TRAINING and self.trained is None:
            self.trained = copy.deepcopy(self.instances[key])
        return self.instances[key] if self.trained is None else self.trained

    def object_of(self, target: Target, kind: str) -> Any:
        """The object of a method for one call, or None for a function."""
        self.trained = None
        is_method = target.is_method and not inspect.ismethod(target.function)
        return self.instance(target, kind) if is_method else None

    def mark_of(self, target: Target, instance: Any, kind: str) -> Any:
        """The mark of an object of a method before a call, taken once for many calls."""
        if instance is None or self.trained is not None:  # a copy for this call only
            return mark(instance)
        if (target.owner, kind) not in self.marks:
            self.marks[target.owner, kind] = mark(instance)
        return self.marks[target.owner, kind]

    def may_have_changed(self, target: Target, kind: str) -> None:
        """Take the mark of an object anew."""
        self.marks.pop((target.owner, kind), None)

    def forget(self, target: Target, kind: str) -> None:
        """Make the object of a method anew."""
        self.instances.pop((target.owner, kind), None)
        self.may_have_changed(target, kind)

    def kind_of(self, target: Target) -> str:
        """The kind of data with which a valid call succeeds; the error of each if there is none."""
        if target.name in self.kinds:
            return self.kinds[target.name]
        errors = []
        for kind in Makers.KINDS:
            try:
                with quiet():
                    self.trained = None
                    self.call(target, self.arguments(target, kind), kind)
            except Exception as error:
                errors.append(f"  {kind}: {type(error).__name__}: {str(error)[:200]}")
                continue
            self.kinds[target.name] = kind
            self.may_have_changed(target, kind)
            return kind
        raise LookupError(f"no valid call of {target.name}:\n" + "\n".join(dict.fromkeys(errors)))

    # ---- hostile calls

    def attack(
        self, target: Target, values: Callable[[str], list[str]] = lambda parameter: list(VALUES)
    ) -> list[Result]:
        """Every parameter with each of `values` (which may depend on its name)."""
        kind = self.kind_of(target)
        self.around = {}
        results = []
        for domain in target.domains:
            for name in values(domain.name):
                if domain.name == "n_jobs" and name == "-1":
                    continue  # legal, and on a busy machine processes take long to start
                results.append(self.throw(target, domain, name, kind))
        return results

    def _around(self) -> dict[str, Any]:
        return {"the process": process_state(), "a file": files(self.folder)}

    @staticmethod
    def kept(target: Target, instance: Any, watched: dict[str, Any]) -> dict[str, Any]:
        """What is as before after a call that succeeded: the data, and a model with its weights."""
        found = {"the data": mark(_data(watched))}
        if hasattr(instance, "fit") and target.attribute not in TRAINING:
            found["the object"] = mark(instance)
        return found

    def throw(self, target: Target, domain: Domain, name: str, kind: str) -> Result:
        arguments, value = self.arguments(target, kind), VALUES[name]()
        partner = PARTNERS.get(domain.name)
        if partner is not None and partner in {d.name for d in target.domains}:
            arguments[partner] = self.makers.find(partner, kind)
        arguments[domain.name] = value
        result = functools.partial(Result, target.short, domain.name, name)
        instance = self.object_of(target, kind)
        watched = {k: v for k, v in arguments.items() if not inspect.isgenerator(v)}
        # What was found unchanged after the last call is how it is before this one.
        before = self.around or self._around()
        before["the object"] = self.mark_of(target, instance, kind)
        before |= {"an argument": mark(watched), "the data": mark(_data(watched))}
        self.around = {}
        try:
            with quiet():
                returned = self.call(target, dict(arguments), kind)
        except Exception as error:
            message = f"{type(error).__name__}: {_plain(str(error))[:160]}"
            around = self._around()
            after = {"the object": mark(instance), "an argument": mark(watched), **around}
            if changed := _difference(before, after):
                self.forget(target, kind)
                _restore(before["the process"])
                return result("changed", f"{changed} changed by the refusal {message}")
            self.around = around
            return result("refused", message)
        found = self.kept(target, instance, watched)
        if "the object" not in found:
            self.may_have_changed(target, kind)
        if changed := _difference(before, found):
            self.forget(target, kind)
            return result("changed", f"{changed} changed by a call that gave {_shown(returned)}")
        if domain.forbids(value):
            return result("silent", f"gave {_shown(returned)}")
        # A sampler of numbers hands rows on as they are.
        passed_on = target.attribute == "fit_resample"
        if holds_nan(returned) and domain.name not in MAY_BE_NAN and not passed_on:
            return result("silent", f"gave NaN: {_shown(returned)}")
        return result("legal")


def _data(arguments: dict[str, Any]) -> dict[str, Any]:
    kinds = (np.ndarray, pd.DataFrame, pd.Series, torch.Tensor)
    return {k: value for k, value in arguments.items() if k in ROWS or isinstance(value, kinds)}


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What of `after` is not as it was before, or nothing."""
    for what, other in after.items():
        if before[what] != other:
            if what == "the process":
                what += str([key for key in other if before[what][key] != other[key]])
            return what
    return ""


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\n", " ")


def _shown(thing: Any) -> str:
    try:
        return _plain(repr(thing)[:100])
    except Exception as error:  # the repr of what should have been refused
        return f"{type(thing).__name__}, whose repr raises {type(error).__name__}"


def _restore(state: dict[str, Any]) -> None:
    import matplotlib.pyplot as plt

    plt.close("all")
    os.environ.clear()
    os.environ.update(state["environment"])
    os.chdir(state["folder"])


@contextmanager
def quiet() -> Iterator[None]:
    import matplotlib.pyplot as plt

    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


@contextmanager
def harness(folder: Path, backbone: str) -> Iterator[Harness]:
    """A harness whose hub is in this process."""
    from tests.fake_hub import fake_hub, use_hub

    with fake_hub() as hub, pytest.MonkeyPatch.context() as patch:
        use_hub(patch, hub, folder / "hub")
        (folder / "here").mkdir()
        patch.chdir(folder / "here")  # a name that is taken for a folder is made there
        yield Harness(folder, backbone)


def table(results: list[Result]) -> str:
    """Calls by outcome."""
    counts = Counter(result.outcome for result in results)
    outcomes = ("refused", "legal", "silent", "changed")
    return ", ".join(f"{counts[name]:,} {name}" for name in outcomes)
