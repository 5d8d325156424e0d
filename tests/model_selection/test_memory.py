"""A trial that failed keeps neither its model nor its data alive."""

from __future__ import annotations

import gc
import weakref

import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from skorch.callbacks import Callback

from skdice import DiceClassifier, DiceTokenClassifier
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.heads import head_fits


class FailsAtFirst(Callback):
    """Let the first fits fail, and count the modules that are alive when one begins."""

    live: weakref.WeakSet = weakref.WeakSet()
    counts: list[int] = []
    n_failing = 3

    def on_train_begin(self, net, **kwargs):
        gc.collect()
        type(self).counts.append(len(type(self).live))
        type(self).live.add(net.module_)

    def on_batch_end(self, net, **kwargs):
        if len(type(self).counts) <= self.n_failing:
            raise RuntimeError("CUDA out of memory")


@pytest.fixture(autouse=True)
def anew():
    FailsAtFirst.live, FailsAtFirst.counts = weakref.WeakSet(), []


@pytest.mark.slow
def test_failed_trials_let_go_of_their_models(tiny_backbone, sentences):
    X, y = sentences
    tagger = DiceTokenClassifier(
        backbone=tiny_backbone, max_epochs=1, callbacks=[FailsAtFirst()], random_state=0
    )
    search = LossSearchCV(
        tagger, loss_space("focal"), n_trials=5, cv=2, strategy="full", error_score=0.0,
        refit=False, random_state=0,
    )  # fmt: skip
    with pytest.warns(FitFailedWarning, match="out of memory"):
        search.fit(X * 2, y * 2)
    assert len(FailsAtFirst.counts) == 3 + 2 * 2
    assert FailsAtFirst.counts[:4] == [0, 0, 0, 0]  # when a fit begins after a failed one
    assert len(search.cv_results_["params"]) == 5
    gc.collect()
    assert len(FailsAtFirst.live) == 0


@pytest.mark.slow
def test_heads_that_failed_together_are_gone_before_they_run_in_halves(monkeypatch):
    live: weakref.WeakSet = weakref.WeakSet()
    counts = []
    fit = head_fits.HeadData.fit

    class Large:
        """What a failed attempt holds."""

    def failing(self, models, *args):
        gc.collect()
        counts.append(len(live))
        held = Large()
        live.add(held)
        if len(models) > 1:
            raise RuntimeError("CUDA out of memory")
        return fit(self, models, *args)

    monkeypatch.setattr(head_fits.HeadData, "fit", failing)
    X, y = make_classification(weights=[0.8], random_state=0)
    search = LossSearchCV(
        DiceClassifier(max_epochs=1), loss_space("focal"), n_trials=4, cv=2, strategy="shared",
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert len(search.cv_results_["params"]) == 4
    assert len(counts) > 4
    assert max(counts) == 0
