"""Labels that are not known, of rows with several: what they must not count in."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multioutput import MultiOutputClassifier
from skorch.callbacks import Callback

from skdice import BiasTunedClassifier, DiceClassifier, DiceSequenceClassifier
from skdice.datasets import read_table
from skdice.exceptions import SkippedRowsWarning
from skdice.inputs.labels import UNKNOWN, read_labels
from skdice.inputs.rows import take
from skdice.inspection import html_report
from skdice.losses.base import resolve_loss
from skdice.metrics import AlertBudget, RejectAt, class_f1_scorer
from skdice.metrics.decisions.span_counter import SpanCounter
from skdice.model_selection import (
    LossSearchCV,
    MultilabelStratifiedKFold,
    adapt_prior,
    out_of_fold,
)
from skdice.tasks.files import files_of
from tests.fits import Given

LOSSES = ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice")
N = 240
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
COMPLETE = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(N, 3)) > [0.5, 1.0, 1.5]).astype(int)
SURE = Given(("a", "b", "c"), multilabel=True)
HIDDEN = np.arange(N)[:, None] % 4 == np.arange(3)  # a quarter of each label, never a whole row
Y = np.where(HIDDEN, np.nan, COMPLETE)
FRAME = pd.DataFrame(Y, columns=["a", "b", "c"])


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_that_of_each_label_on_its_known_rows(name):
    logits = torch.randn(N, 3, dtype=torch.float64, generator=torch.manual_seed(0))
    target = torch.tensor(np.where(HIDDEN, -100, COMPLETE))

    def gradient(columns, rows):
        z = logits[rows][:, columns].requires_grad_()
        y = target[rows][:, columns]
        counts = [float((target[:, c] == 1).sum() * N / (~HIDDEN[:, c]).sum()) for c in columns]
        loss = resolve_loss(name)
        for part in (loss, getattr(loss, "second", loss)):
            if "average" in part.get_params(deep=False):  # micro counts and surrogates are shared
                part.set_params(average="macro", surrogate="none")
        loss = loss.prepare(counts, multilabel=True, n_samples=N)
        (found,) = torch.autograd.grad(loss(z, y), z)
        return found

    together = gradient([0, 1, 2], slice(None))
    for label in range(3):
        known = ~HIDDEN[:, label]
        alone = gradient([label], torch.tensor(known))[:, 0]
        np.testing.assert_allclose(together[known, label] * 3, alone, rtol=1e-9, atol=1e-15)
        assert (together[~known, label] == 0).all()


class FromZero(Callback):
    def on_train_begin(self, net, **kwargs):
        for values in net.module_.parameters():
            torch.nn.init.zeros_(values)


def test_a_model_is_that_of_each_label_on_its_known_rows():
    # A linear layer shares nothing between labels. The mean over three labels has a third of each
    # gradient, so the rate is three times as high.
    settings = {"max_epochs": 30, "batch_size": N, "schedule": "constant", "random_state": 0}
    sgd = {"optimizer": torch.optim.SGD, "optimizer__weight_decay": 0.0}
    settings |= {"loss": "ce", "net_params": sgd, "callbacks": [FromZero()]}
    model = DiceClassifier(lr=1.5, **settings).fit(X, FRAME)
    for label in range(3):
        known = ~HIDDEN[:, label]
        names = [["yes"] if value else [] for value in COMPLETE[known, label]]
        alone = DiceClassifier(lr=0.5, **settings).fit(X[known], names)
        found, expected = (m.predict_proba(X)[:, k] for m, k in ((model, label), (alone, 0)))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("form", ["array", "frame", "nullable", "objects", "lists"])
def test_scores_count_known_labels_in_every_container(form):
    y = {
        "array": Y,
        "frame": FRAME,
        "nullable": FRAME.astype("Int64"),
        "objects": FRAME.astype(object).where(FRAME.notna(), None),
        "lists": [[None if v != v else int(v) for v in row] for row in Y],
    }[form]
    model = DiceClassifier(max_epochs=3, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ([0, 1, 2] if form in ("array", "lists") else list("abc"))
    found = model.predict(X)
    known = ~HIDDEN
    expected = f1_score(COMPLETE[known], found[known])
    assert model.score(X, y) == pytest.approx(expected)
    assert class_f1_scorer(model, X, y) == pytest.approx(expected)
    scores = model.evaluate(X, y)
    for label in range(3):
        rows = known[:, label]
        of_label = f1_score(COMPLETE[rows, label], found[rows, label])
        assert scores[f"f1 of {model.classes_[label]}"] == pytest.approx(of_label)
    whole = known.all(axis=1)
    assert 0 < whole.sum() < N
    assert scores["accuracy"] == pytest.approx((found == COMPLETE)[whole].all(axis=1).mean())


def test_what_is_hidden_changes_nothing():
    """Weights and counts are those of the same rows with other values behind the missing ones."""
    model = DiceClassifier(loss="weighted_ce", max_epochs=2, random_state=0).fit(X, FRAME)
    for column, name in enumerate("abc"):
        share = FRAME[name].mean()  # of the known
        assert model.class_counts_[column] == pytest.approx(share * N)


def test_a_decision_is_tuned_on_known_labels():
    inner = DiceClassifier(loss="ce", max_epochs=5, random_state=0).fit(X, FRAME)
    tuned = BiasTunedClassifier(inner, cv="prefit", scoring="f1_micro").fit(X, FRAME)
    decided = inner.predict_proba(X) > np.array([tuned.thresholds_[name] for name in "abc"])
    np.testing.assert_array_equal(tuned.predict(X), decided)
    # The same with any values behind the missing ones, if the model is sure that they are right.
    p = inner.predict_proba(X)
    missing = BiasTunedClassifier(SURE, cv="prefit", scoring="f1_micro").fit(p, FRAME)
    full = pd.DataFrame(np.where(HIDDEN, 0, COMPLETE), columns=list("abc"))
    sure = BiasTunedClassifier(SURE, cv="prefit", scoring="f1_micro")
    sure.fit(np.where(HIDDEN, 0.0, p), full)
    np.testing.assert_allclose(missing.bias_, sure.bias_)
    with pytest.raises(ValueError, match="reads no missing labels"):
        BiasTunedClassifier(inner, cv="prefit", scoring=lambda t, p: 0.0).fit(X, FRAME)


def hidden(n, share, seed):
    """Calibrated probabilities of three labels, the truth, and the truth with hidden cells."""
    draw = np.random.default_rng(seed)
    p = expit(draw.normal(-1.5, 2.5, (n, 3)))
    truth = (draw.random(p.shape) < p).astype(int)
    out = draw.random(p.shape) < share
    out[out.all(axis=1), 0] = False  # a row without any known label is refused
    return p, truth, np.where(out, np.nan, truth)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_budget_of_alerts_holds_whatever_is_hidden(share, each):
    alerts = []
    for seed in range(40):
        p, _, y = hidden(1200, share, seed)
        tuned = BiasTunedClassifier(SURE, cv="prefit", scoring=AlertBudget(200, each=each))
        tuned.fit(p[:800], y[:800])
        assert tuned.bound_.promised == 200
        found = tuned.predict(p[800:])
        alerts.append(1000 * (found.mean(axis=0).max() if each else found.any(axis=1).mean()))
    alerts = np.array(alerts)
    assert (alerts > 200).mean() <= (0.15 if each else 0.05)
    assert alerts.mean() > 120


@pytest.mark.filterwarnings("ignore::skdice.exceptions.DecisionWarning")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_accuracy_of_decided_rows_holds_whatever_is_hidden(share):
    broken = promised = 0
    for seed in range(40):
        p, truth, y = hidden(1500, share, seed)
        tuned = BiasTunedClassifier(SURE, cv="prefit", scoring=RejectAt(0.65))
        tuned.fit(p[:1000], y[:1000])
        found = tuned.predict(p[1000:])
        decided = found[:, 0] >= 0
        promised += tuned.bound_.promised == 0.65
        broken += (found == truth[1000:])[decided].all(axis=1).mean() < tuned.bound_.promised
    assert promised >= 30  # of some draws a little less can be promised, which then holds
    assert broken <= 2


def test_rows_to_leave_to_a_person_need_rows_that_are_known_whole():
    p, truth, _ = hidden(90, 0, 0)
    y = np.where(np.arange(90)[:, None] % 3 == np.arange(3), np.nan, truth)
    told = r"RejectAt\(.*accuracy=0\.8\) .* all known.* there is none"
    with pytest.raises(ValueError, match=told):
        BiasTunedClassifier(SURE, cv="prefit", scoring=RejectAt(0.8)).fit(p, y)
    tuned = BiasTunedClassifier(SURE, cv="prefit").fit(p, y)
    assert "accuracy" not in tuned.evaluate(p, y)
    with pytest.raises(ValueError, match="no held-out row has labels that are all known"):
        adapt_prior(tuned, p)


def test_a_share_of_rows_is_left_out_whatever_is_hidden():
    for share in (0.0, 0.6):
        p, _, y = hidden(3000, share, 0)
        tuned = BiasTunedClassifier(SURE, cv="prefit", reject=0.2).fit(p[:1500], y[:1500])
        assert (tuned.predict(p[1500:])[:, 0] < 0).mean() == pytest.approx(0.2, abs=0.03)


def test_a_frequency_before_is_that_of_rows_that_are_known_whole():
    p, truth, y = hidden(3000, 0.4, 0)
    model = BiasTunedClassifier(SURE, cv="prefit").fit(p, y)
    before = adapt_prior(model, prior={"a": 0.5}).prior_shift_.before
    whole = np.isfinite(y).all(axis=1)
    np.testing.assert_allclose(before, truth[whole].mean(axis=0))


def test_alerts_of_spans_need_no_truth():
    tags = [["O", "B-A"], [None, None], ["B-A", None]]
    counter = SpanCounter(tags, ["O", "B-A"], "iob2")
    counts = counter.counts(np.array([0, 0, 1, 0, 0, 1]))
    assert counts.alerts == 2
    assert counts.predicted.tolist() == [0]


def test_folds_and_searches():
    folds = [test for _, test in MultilabelStratifiedKFold(4).split(X, FRAME)]
    for label in range(3):
        counts = [np.nansum(Y[test, label]) for test in folds]
        assert np.ptp(counts) <= 2
    model = DiceClassifier(max_epochs=1, random_state=0)
    assert out_of_fold(model, X, FRAME, cv=3).predictions.shape == (N, 3)
    LossSearchCV(model, {"loss": ["ce", "dice"]}, n_trials=2, cv=2, random_state=0).fit(X, FRAME)
    BiasTunedClassifier(model, cv=3).fit(X, FRAME)
    early = DiceClassifier(max_epochs=2, early_stopping=True, random_state=0)
    early.fit(X, FRAME)


def test_texts(tiny_backbone):
    texts = [f"word{i % 7} more" for i in range(24)]
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(texts, FRAME[:24], X_val=texts, y_val=FRAME[:24])
    assert model.predict(texts).shape == (24, 3)
    assert 0 <= model.score(texts, FRAME[:24]) <= 1


def test_what_is_refused():
    model = DiceClassifier(max_epochs=1)
    nothing = Y.copy()
    nothing[5] = np.nan
    for y, message in (
        (nothing, r"y\[5\] has no known label"),
        ([0.0, 1.0, 0.0, np.nan] * (N // 4), r"y\[3\] is missing"),
        (np.where(np.arange(3) == 1, 2.0, Y), r"y\[0\]\[1\] is 2"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):  # as scikit-learn's own models
        MultiOutputClassifier(LogisticRegression()).fit(X, Y)


def test_empty_cells_of_a_table(tiny_backbone, tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("text,toxic,threat\n" + "a b,1,\nc d,0,1\ne f,,0\ng h,,\ni j,1,1\n" * 3)
    with pytest.warns(UserWarning, match="left out 3 whose labels are all empty"):
        X, y = read_table(path, label_columns=["toxic", "threat"])
    assert X == ["a b", "c d", "e f", "i j"] * 3
    assert list(y[:4]) == [["toxic"], ["threat"], [], ["toxic", "threat"]]
    expected = [[1, UNKNOWN], [0, 1], [UNKNOWN, 0], [1, 1]]
    assert read_labels(y, missing=True).values[:4].tolist() == expected
    some = read_labels(take(y, np.array([0, 1])), missing=True)  # columns are sorted by name
    assert some.classes.tolist() == ["threat", "toxic"]
    assert some.values.tolist() == [[UNKNOWN, 1], [1, 0]]
    for labels in (y, list(y)):  # what has no use for them says so
        with pytest.raises(ValueError, match=r"'threat'.* is missing"):
            read_labels(labels)
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(X, y)
    scores = model.evaluate(X, y)
    found, table = model.predict(X), read_labels(y, missing=True).values
    known = table != UNKNOWN
    assert scores["f1"] == pytest.approx(f1_score(table[known] == 1, found[known]))
    report = files_of(model.task).report(model, X, y, found, mode="default", as_json=True)
    assert report["micro avg"]["f1-score"] == pytest.approx(scores["f1"])
    page = html_report(model, X, y)
    assert re.search(rf"<td>micro average</td>.*?<td>{scores['f1']:.3f}</td>", page)


def test_a_row_with_an_empty_cell_of_a_single_column_is_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,toxic\nhello you,1\nbye you,\nok,0\n")
    with pytest.warns(SkippedRowsWarning, match="left out 1 whose label is empty"):
        X, y = read_table(path, text_columns="text", label_columns=["toxic"])
    assert (X, y) == (["hello you", "ok"], [["toxic"], []])
