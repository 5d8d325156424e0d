"""Fits that tests look into, stop or forbid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from skorch.callbacks import Callback

from skdice import (
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine import used_embeddings
from skdice.engine.fit_plan import encode
from skdice.engine.net import FineTuningNet
from tests import data

# Estimators of text, with twelve rows that each can fit.
ROWS_OF: dict[type, tuple[Any, Any]] = {
    DiceSequenceClassifier: (data.TEXTS, data.LABELS),
    DiceTokenClassifier: (data.SENTENCES, data.TAGS),
    DiceEntityRecognizer: (data.JOINED, data.ENTITIES),
    DiceMRCTagger: (data.SENTENCES, data.SPANS),
    DiceQuestionAnswerer: (data.QUESTIONS, data.ANSWERS),
    DiceMultiSpanAnswerer: (data.QUESTIONS, data.ANSWERS),
}
# The same with rows of unequal length that each can fit.
UNEVEN_TASKS: dict[str, tuple[Any, Any, Any]] = {
    "tagger": (DiceTokenClassifier, data.UNEVEN, data.UNEVEN_TAGS),
    "texts": (DiceSequenceClassifier, data.UNEVEN_TEXTS, data.UNEVEN_LABELS),
    "recognizer": (DiceEntityRecognizer, data.UNEVEN_TEXTS, data.UNEVEN_ENTITIES),
    "mrc": (DiceMRCTagger, data.UNEVEN, data.UNEVEN_TAGS),
    "reader": (DiceQuestionAnswerer, data.UNEVEN_QUESTIONS, data.UNEVEN_ANSWERS),
}


def nothing(net: Any, value: Any) -> None:
    """Do nothing."""


class Tells(Callback):
    """Call functions as a fit and its updates begin and end; its copies call the same ones."""

    def __init__(
        self,
        begin: Callable[[Any, Any], Any] = nothing,
        before: Callable[[Any, Any], Any] = nothing,
        after: Callable[[Any, Any], Any] = nothing,
    ) -> None:
        self.begin = begin
        self.before = before
        self.after = after

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        """Tell the net and the encoded data."""
        self.begin(net, X)

    def on_batch_begin(self, net: Any, batch: Any = None, **kwargs: Any) -> None:
        """Tell the net and the micro-batches of the next update."""
        self.before(net, batch)

    def on_batch_end(self, net: Any, loss: Any = None, **kwargs: Any) -> None:
        """Tell the net and the loss of the last update."""
        self.after(net, loss)


def lengths_in(made: list[tuple[int, int]]) -> Tells:
    """A callback that adds the epochs and updates that each fit plans to a list."""

    def note(net: Any, batch: Any) -> None:
        if net.done_ == 0:
            made.append((net.max_epochs, net.n_updates_))

    return Tells(before=note)


def before_training(model: Any, *data: Any, **arguments: Any) -> tuple[Any, Any]:
    """The net of a fit before its first update, and the encoded data that it is given."""
    found = []

    def stop(*given: Any) -> None:
        found[:] = given
        raise InterruptedError

    with pytest.raises(InterruptedError):
        model.set_params(callbacks=[Tells(begin=stop)]).fit(*data, **arguments)
    net, encoded = found
    return net, encoded


@contextmanager
def each_update(call: Callable[[], Any]) -> Iterator[None]:
    """Call a function before each update; with checkpoints a fit takes no callback for that."""
    train_step = FineTuningNet.train_step

    def step(net: Any, batch: Any, **kwargs: Any) -> Any:
        call()
        return train_step(net, batch, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FineTuningNet, "train_step", step)
        yield


class Killed(BaseException):
    """What nobody catches, as nobody catches a signal."""


@contextmanager
def killed_at(update: int) -> Iterator[Any]:
    """Let what follows be killed at an update, counted from 0 over all of its fits."""
    made = []

    def die() -> None:
        if len(made) == update:
            raise Killed
        made.append(1)

    with pytest.raises(Killed) as killed, each_update(die):
        yield killed


@contextmanager
def word_tables_from(least: int) -> Iterator[None]:
    """Let tables of so many numbers be trained in part, as those of real size are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(used_embeddings, "LEAST", least)
        yield


def tensors_of(model: Any) -> dict[str, torch.Tensor]:
    """The weights of a fitted model, and the buffers of its loss, by name."""
    return {**model.net_.module_.state_dict(), **dict(model.net_.criterion_.named_buffers())}


def assert_same_weights(model: Any, other: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """The weights of two fitted models are equal, or as close as is allowed."""
    one, two = (dict(m.net_.module_.state_dict()) for m in (model, other))
    torch.testing.assert_close(one, two, rtol=rtol, atol=atol)


def assert_same_fit(model: Any, other: Any) -> None:
    """Two fits made the same tensors by the same epochs."""
    torch.testing.assert_close(tensors_of(model), tensors_of(other), rtol=0, atol=0)
    kept = [[{**epoch, "dur": None} for epoch in m.history_] for m in (model, other)]
    assert kept[0] == kept[1]
    assert len(kept[0]) == model.n_iter_ == other.n_iter_


def numbers_of(model: Any, X: Any) -> np.ndarray:
    """All numbers behind a model's predictions, in one array."""
    if isinstance(model, DiceQuestionAnswerer):
        return np.array([spot["score"] for row in model.predict_spans(X, n_best=3) for spot in row])
    if isinstance(model, DiceMRCTagger):
        model.predict(X[:1])  # which sets precision and device
        return np.concatenate(model.net_.logits(encode(model, X)))
    return np.concatenate([np.ravel(rows) for rows in model.predict_proba(X)])


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probabilities are its rows."""

    def __init__(self, labels: Sequence[Any] = (0, 1), multilabel: bool = False) -> None:
        self.labels, self.multilabel = labels, multilabel

    def fit(self, X: Any, y: Any) -> Given:
        """Learn nothing."""
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        return np.array(self.labels)

    @property
    def multilabel_(self) -> bool:
        """Whether a row may have several."""
        return self.multilabel

    def __sklearn_is_fitted__(self) -> bool:
        """It always is."""
        return True

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest label of each row."""
        return self.classes_[np.argmax(X, axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """The rows."""
        return X


def never_fitted(kind: type) -> Any:
    """The same class, whose fits fail the test."""

    class Untouched(kind):
        def fit(self, X: Any, y: Any = None, **arguments: Any) -> Any:
            pytest.fail("a fit ran")

    for name in ("__name__", "__qualname__", "__module__"):
        setattr(Untouched, name, getattr(kind, name))
    return Untouched
