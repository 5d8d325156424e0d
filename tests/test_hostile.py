"""Rubbish in every public place: refused by ValueError or TypeError, and nothing has changed."""

from __future__ import annotations

import pickle
import tempfile
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import skdice.datasets as datasets
import skdice.inspection as inspection
import skdice.losses as losses
import skdice.metrics as metrics
import skdice.resampling as resampling
from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.losses import LOSS_NAMES, resolve_loss
from skdice.model_selection import LossSearchCV
from tests.hostile import VALUES, harness, targets

REFUSALS = (ValueError, TypeError)  # NotFittedError is a ValueError
WORDS = [
    "", " ", "a", "\x00", "\ud800", "\u200b", "\u202eabc", "👍🏽", "مرحبا", "O",
    "B-PER", "I-", "-", "X" * 100_000,
]  # fmt: skip
RUN = settings(
    deadline=None,
    max_examples=120,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


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
atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    words,
    st.binary(max_size=3),
    st.just(2**70),
    st.just(object()),
    st.just(pd.NA),
    st.just(np.str_("a")),
    st.just(np.float16("nan")),
)
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
            frozen(["a", "b"]),
            np.array([1.0, np.nan]),
            np.array([1 + 2j]),
            np.array(["2020-01-01"], dtype="datetime64[D]"),
            np.arange(6)[::2],
            np.array([b"a"]),
            sparse.csr_matrix(np.eye(2)),
            pd.Series(["a", pd.NA], dtype="string"),
            pd.Series(["a", "b"], dtype="category"),
            pd.Series(["a", None], dtype="string"),
            pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())),
            pa.array(["a", None]),
            pa.chunked_array([["a"], ["b"]]),
            pl.Series(["a", None, "b"]),
            pl.Series([["a"], ["b", None]]),
            pl.Series([0, 1, 1]),
            pl.DataFrame({"a": ["x", "y"], "b": ["z", None]}),
            pl.DataFrame({"a": ["x", "y"]}).lazy(),
            on_disk([0, 1, 1]),
            torch.zeros(2, 2),
            range(3),
        ]
    ),
)


# Packages in which nothing is left to mend; `make faults` attacks the others as well.
CLEAN = (
    "skdice.inspection", "skdice.metrics", "skdice.export", "skdice.model_selection",
    "skdice.losses", "skdice.datasets", "skdice.resampling",
    "skdice.DiceSequenceClassifier", "skdice.DiceTokenClassifier", "skdice.DiceQuestionAnswerer",
    "skdice.DiceMRCTagger", "skdice.TransformerFeatures", "skdice.DiceEntityRecognizer",
    "skdice.TfidfClassifier", "skdice.CRFTagger", "skdice.text",
)  # fmt: skip
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
        if t.name.startswith(CLEAN)
    ],
)
def test_hostile_values_are_refused_by_name_and_change_nothing(target, attacker):
    step = 6 if any(name in target.name for name in SLOW) else 1
    if target.name.startswith("skdice.losses"):  # whose parameters are mostly the same
        step = 4
    if target.name.startswith(("skdice.Dice", "skdice.Trans")):  # each call fits or predicts
        step = 12

    def values(parameter):
        return [name for i, name in enumerate(VALUES) if (i + len(parameter)) % step == 0]

    results = attacker.attack(target, values)
    assert not [str(r) for r in results if r.outcome not in ("refused", "legal")]


@pytest.mark.slow
def test_every_public_name_can_be_attacked(attacker):
    """A new name needs no line here, unless nobody knows a value for one of its parameters."""
    assert len(VALUES) >= 25
    failed = {}
    for target in targets():
        try:
            attacker.kind_of(target)
        except LookupError as error:
            failed[target.name] = str(error)
    assert not failed


def attempt(call, *args, **kwargs):
    """The result, or the refusal; any other exception is a failure of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*args, **kwargs)
        except REFUSALS as error:
            return error


def unchanged(before, model):
    assert pickle.dumps(before) == pickle.dumps(model.get_params(deep=False))


# ---- estimators


TEXT = {
    "tagger": (DiceTokenClassifier, [["anna", "in", "rome"]], [["B-PER", "O", "B-LOC"]]),
    "classifier": (DiceSequenceClassifier, ["win money", "lunch"], [1, 0]),
    "reader": (DiceQuestionAnswerer, [("who", "anna sings")], [[(0, "anna")]]),
    "mrc": (DiceMRCTagger, [["anna", "in", "rome"]], [["B-PER", "O", "B-LOC"]]),
}


@pytest.fixture(scope="module", params=TEXT)
def fitted(request, tiny_backbone):
    cls, X, y = TEXT[request.param]
    model = cls(backbone=tiny_backbone, max_epochs=1, batch_size=4, random_state=0)
    return model.fit(X, y), X, y


@RUN
@given(X=containers, y=containers)
def test_text_estimators_refuse_by_name_and_stay_as_they_were(fitted, X, y):
    model, good_X, _ = fitted
    params, expected = model.get_params(deep=False), model.predict(good_X)
    for name in ("predict", "predict_proba", "predict_spans"):
        if hasattr(model, name):
            attempt(getattr(model, name), X)
    attempt(model.score, X, y)
    attempt(model.score, good_X, y)
    unchanged(params, model)
    again = model.predict(good_X)
    assert [list(row) if isinstance(row, list) else row for row in again] == [
        list(row) if isinstance(row, list) else row for row in expected
    ]


@settings(RUN, max_examples=25)
@given(X=containers, y=containers)
def test_fits_of_rubbish_are_refused_or_done(fitted, X, y):
    from sklearn.base import clone

    model, good_X, good_y = fitted
    for rows, labels in ((X, y), (good_X, y), (X, good_y)):
        fresh = clone(model)
        found = attempt(fresh.fit, rows, labels)
        if isinstance(found, Exception):
            assert not hasattr(fresh, "net_")
            unchanged(model.get_params(deep=False), fresh)


@settings(RUN, max_examples=40)
@given(X=containers, y=containers)
def test_numbers_are_refused_or_fitted(X, y):
    model = DiceClassifier(max_epochs=1, random_state=0)
    good = np.eye(4)
    for rows, labels in ((X, y), (good, y), (X, [0, 1, 0, 1])):
        attempt(model.fit, rows, labels)
    model = DiceClassifier(max_epochs=1, random_state=0).fit(good, [0, 1, 0, 1])
    before = model.predict_proba(good)
    attempt(model.predict, X)
    attempt(model.score, X, y)
    np.testing.assert_array_equal(model.predict_proba(good), before)


@settings(RUN, max_examples=30)
@given(X=containers)
def test_features_of_rubbish(tiny_backbone, X):
    attempt(TransformerFeatures(backbone=tiny_backbone).fit_transform, X)


@settings(RUN, max_examples=30)
@given(X=containers, y=containers)
def test_meta_estimators_refuse_or_fit(tiny_backbone, X, y):
    linear = DiceClassifier(max_epochs=1, random_state=0)
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    good = np.eye(6)
    for model in (BiasTunedClassifier(linear), LossSearchCV(linear, n_trials=1, cv=2)):
        for rows, labels in ((X, y), (good, y), (X, [0, 1] * 3)):
            attempt(model.fit, rows, labels)
    model = BiasTunedTagger(tagger)
    for rows, labels in ((X, y), (X, [["B-PER"], ["O"]])):
        attempt(model.fit, rows, labels)


PARAMETERS = (
    "loss", "max_epochs", "lr", "batch_size", "device", "precision", "random_state", "frozen",
    "max_length", "early_stopping", "backbone", "weight_decay", "checkpoint_every",
)  # fmt: skip


@settings(RUN, max_examples=60)
@given(kind=st.sampled_from(list(TEXT)), name=st.sampled_from(PARAMETERS), value=nested)
def test_parameters_of_the_wrong_kind_are_named(kind, name, value, tiny_backbone):
    cls, X, y = TEXT[kind]
    model = cls(**{"backbone": tiny_backbone, "max_epochs": 1, name: value})
    if name not in model.get_params(deep=False):
        return
    if name in ("max_epochs", "batch_size") and isinstance(value, int) and value > 0:
        return  # a long fit is no error
    try:
        found = attempt(model.fit, X, y)
    except OSError:  # a folder that cannot be
        assert name == "backbone"
        return
    if isinstance(found, Exception) and name != "backbone":
        assert name in str(found), str(found)


# ---- functions


METRICS = [
    getattr(metrics, name)
    for name in metrics.__all__
    if name.endswith(("_score", "_support", "_report"))
]
OTHERS = [
    inspection.span_errors,
    inspection.show_tags,
    inspection.reading_imbalance,
    inspection.SpanConfusionDisplay.from_predictions,
    inspection.ClassFrequencyDisplay.from_predictions,
    metrics.positive_class,
]


@pytest.mark.parametrize("function", [*METRICS, *OTHERS], ids=lambda f: f.__qualname__)
@RUN
@given(a=containers, b=containers)
def test_functions_of_two_refuse_what_they_cannot_count(function, a, b):
    import matplotlib.pyplot as plt

    attempt(function, a, b)
    attempt(function, [["B-PER", "O"]], b)
    plt.close("all")


@pytest.mark.parametrize(
    "function",
    [
        inspection.imbalance,
        inspection.ImbalanceDisplay.from_labels,
        metrics.normalize_answer,
        resolve_loss,
        resampling.build_gazetteer,
        datasets.from_hf,
    ],
    ids=lambda f: f.__qualname__,
)
@RUN
@given(a=containers)
def test_functions_of_one_refuse_what_they_cannot_read(function, a):
    import matplotlib.pyplot as plt

    attempt(function, a)
    plt.close("all")


SAMPLERS = [
    resampling.BackgroundUnderSampler,
    resampling.TagOverSampler,
    resampling.TextOverSampler,
    resampling.TextUnderSampler,
    resampling.EntityReplacement,
]


@pytest.mark.parametrize("sampler", SAMPLERS)
@RUN
@given(X=containers, y=containers)
def test_samplers_refuse_what_they_cannot_draw(sampler, X, y):
    attempt(sampler(random_state=0).fit_resample, X, y)
    attempt(sampler(random_state=0).fit_resample, X, [["B-PER"], ["O"]])


# ---- losses


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
        torch.zeros(4, 3).to_sparse(),
        torch.ones(8, 6)[::2, ::2],
        torch.zeros(4, dtype=torch.bool),
    ]
)


@pytest.mark.parametrize("name", LOSS_NAMES)
@RUN
@given(logits=tensors | nested, target=tensors | nested)
def test_losses_refuse_what_is_no_batch(name, logits, target):
    loss = losses.resolve_loss(name)
    before = {k: v.clone() for k, v in loss.state_dict().items()}
    found = attempt(loss, logits, target)
    if isinstance(found, Exception):
        after = loss.state_dict()
        assert all(torch.equal(before[k], after[k]) for k in before)


# ---- messages


@pytest.mark.parametrize(
    "call",
    [
        lambda: inspection.imbalance(np.array(["a", "b"]), background=np.str_("c")),
        lambda: metrics.span_f1_score(np.array(["a"]), np.array(["b"])),
        lambda: DiceTokenClassifier().fit(np.array(["a"]), [["O"]]),
        lambda: DiceTokenClassifier().fit([["a"]], np.array(["B-X"])),
        lambda: DiceSequenceClassifier().fit(np.array([["a", "b", "c"]]), ["O"]),
        lambda: metrics.positive_class(np.array(["a", "b"]), np.ones(2), np.str_("c")),
    ],
)
def test_messages_show_values_as_the_user_wrote_them(call):
    with pytest.raises(REFUSALS) as error:
        call()
    assert "np." not in str(error.value)
