"""Rubbish in every public place: refused by ValueError or TypeError, and nothing has changed."""

from __future__ import annotations

import contextlib
import tempfile
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import skdice.inspection as inspection
import skdice.metrics as metrics
from skdice import DiceSequenceClassifier, DiceTokenClassifier
from tests.hostile.harness import TRAINING, harness, mark, quiet
from tests.hostile.surface import targets
from tests.hostile.values import ROWS, VALUES

WORDS = [
    "", " ", "a", "\x00", "\ud800", "\u200b", "\u202eabc", "👍🏽", "مرحبا", "O",
    "B-PER", "I-", "-", "X" * 100_000,
]  # fmt: skip


def frozen(array):
    array = np.array(array)
    array.setflags(write=False)
    return array


def on_disk(values):
    with tempfile.NamedTemporaryFile() as file:
        array = np.memmap(file, dtype=np.int64, mode="w+", shape=(len(values),))
        array[:] = values
        return array


words = st.sampled_from(WORDS)
odd = st.sampled_from([2**70, object(), pd.NA, np.str_("a"), np.float16("nan")])
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=3))
atoms = st.one_of(plain, words, odd)
nested = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=12
)
sentences = st.lists(st.lists(words, max_size=4), min_size=1, max_size=4)
containers = st.one_of(
    nested,
    sentences,
    st.lists(words, min_size=1, max_size=5),
    st.lists(st.tuples(words, words), min_size=1, max_size=4),
    st.dictionaries(words, atoms, max_size=2),
    st.sets(words, max_size=3),
    st.lists(words, max_size=3).map(lambda rows: pd.Series(rows, dtype=object)),
    st.lists(atoms, max_size=3).map(lambda rows: pd.DataFrame({"a": rows}, dtype=object)),
    st.lists(words, max_size=3).map(iter),
    st.sampled_from(
        [
            np.array(3),
            np.zeros((0, 2)),
            np.zeros((2, 3, 4)),
            frozen([0, 1, 1]),
            np.array([1.0, np.nan]),
            np.array([1 + 2j]),
            np.array(["2020-01-01"], dtype="datetime64[D]"),
            np.array([b"a"]),
            sparse.csr_matrix(np.eye(2)),
            pd.Series(["a", "b"], dtype="category"),
            pd.Series(["a", None], dtype="string"),
            pa.chunked_array([["a"], ["b"]]),
            pl.Series(["a", None, "b"]),
            pl.DataFrame({"a": ["x", "y"], "b": ["z", None]}),
            pl.DataFrame({"a": ["x", "y"]}).lazy(),
            on_disk([0, 1, 1]),
            torch.zeros(2, 2),
            range(3),
        ]
    ),
)


# Each of their calls fits or draws: these get a part of the values.
SLOW = ("LossSearchCV", "export_onnx", "html_report", ".plot", "from_estimator", "compare_losses")


@pytest.fixture(scope="module")
def attacker(tmp_path_factory, tiny_backbone):
    with harness(tmp_path_factory.mktemp("hostile"), tiny_backbone) as found:
        yield found


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, id=t.short, marks=[pytest.mark.slow] if "onnx" in t.name else [])
        for t in targets()
    ],
)
def test_hostile_values_are_refused_and_change_nothing(target, attacker):
    slow = any(name in target.name for name in SLOW)
    step = 10 if slow or (target.name.startswith("skdice.") and "Dice" in target.name) else 3
    names = [domain.name for domain in target.domains]
    shift = zlib.crc32(target.name.encode())

    def values(parameter):
        """Other values for each parameter and target, so that all are tried.

        `make faults` tries every value with each.
        """
        first = names.index(parameter) + shift
        return [name for i, name in enumerate(VALUES) if (i + first) % step == 0]

    results = attacker.attack(target, values)
    assert not [str(r) for r in results if r.outcome not in ("refused", "legal")]


@pytest.mark.slow
def test_every_public_name_can_be_attacked(attacker):
    """A new name needs no line here, unless nobody knows a value for one of its parameters."""
    assert len(VALUES) >= 20
    failed = {}
    for target in targets():
        try:
            attacker.kind_of(target)
        except LookupError as error:
            failed[target.name] = str(error)
    assert not failed


# ---- rows of random shapes

tensors = st.sampled_from(
    [
        torch.zeros(()),
        torch.zeros(0),
        torch.zeros(4),
        torch.zeros(4, 1),
        torch.zeros(4, 3),
        torch.zeros(2, 3, 4),
        torch.full((4, 3), float("nan")),
        torch.full((4, 3), float("inf")),
        torch.zeros(4, 3, dtype=torch.int64),
        torch.zeros(4, dtype=torch.int64),
        torch.full((4,), -7),
        torch.full((4,), 2**40),
        torch.zeros(4, 3, dtype=torch.complex64),
        torch.ones(8, 6)[::2, ::2],
        torch.zeros(4, dtype=torch.bool),
    ]
)


BATCHES = {"logits", "target", "labels", "outputs"}


def rubbish(name):
    return tensors | nested if name in BATCHES else containers


def quick_targets():
    """Callables that take rows, and do not fit again and again."""
    for target in targets():
        slow = any(name in target.name for name in SLOW)
        if not slow or target.name.endswith("cv.fit"):
            names = [d.name for d in target.domains if d.name in ROWS | BATCHES]
            if names:
                yield pytest.param(target, names, id=target.short)


@pytest.mark.parametrize(("target", "names"), [*quick_targets()])
@settings(
    deadline=None,
    derandomize=True,  # what one call leaves behind must not make another's draws differ
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_rubbish_in_place_of_rows_is_refused_or_read(target, names, attacker, data):
    some = st.lists(st.sampled_from(names), min_size=1, unique=True)
    drawn = {name: data.draw(rubbish(name)) for name in data.draw(some)}
    kind = attacker.kind_of(target)
    arguments = attacker.arguments(target, kind) | drawn
    instance = attacker.object_of(target, kind)
    before = attacker.mark_of(target, instance, kind)
    with quiet(), contextlib.suppress(ValueError, TypeError):  # NotFittedError is a ValueError
        attacker.call(target, arguments, kind)
        if target.attribute in TRAINING or not hasattr(instance, "fit"):
            attacker.may_have_changed(target, kind)
            return
    assert mark(instance) == before


# ---- messages


@pytest.mark.parametrize(
    "call",
    [
        lambda: inspection.imbalance(np.array(["a", "b"]), background=np.str_("c")),
        lambda: metrics.span_f1_score(np.array(["a"]), np.array(["b"])),
        lambda: DiceTokenClassifier().fit(np.array(["a"]), [["O"]]),
        lambda: DiceTokenClassifier().fit([["a"]], np.array(["B-X"])),
        lambda: DiceSequenceClassifier().fit(np.array([["a", "b", "c"]]), ["O"]),
    ],
)
def test_messages_show_values_as_the_user_wrote_them(call):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert "np." not in str(error.value)
