"""What a fit says while it runs."""

from __future__ import annotations

import pickle
import re

from sklearn.base import clone

from skdice import DiceClassifier
from skdice.engine.callbacks import AfterEpoch
from tests.fits import killed_at

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 4, [0, 0, 1, 1] * 4


def model(**params):
    return DiceClassifier(max_epochs=3, batch_size=4, random_state=0, **params)


def test_nothing_is_said_unless_asked(capsys, terminal):
    terminal()
    model().fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_a_fit_says_how_long_it_is_and_skorch_prints_its_epochs(capsys):
    fitted = model(verbose=1, early_stopping=True, validation_fraction=0.5).fit(
        [[i] for i in range(16)], Y
    )
    out, errors = capsys.readouterr()
    lines = out.splitlines()
    assert errors == ""
    assert lines[:2] == ["the positive class is 1", "lr 0.05, 3 epochs, 6 updates, batches of 4"]
    header = lines[2].split()
    assert header == ["epoch", "lr", "skipped_updates", "train_loss", "valid_score", "dur"]
    assert len(lines) == 4 + fitted.n_iter_ + ("Restoring" in out)  # the best epoch


def test_a_terminal_gets_skorchs_bar(capsys, terminal):
    terminal()
    fitted = model(verbose=1).fit(X, Y)
    table, bar = capsys.readouterr()
    assert re.search(r"0/4 \[\d\d:\d\d<", bar)  # the second epoch knows how many there are
    assert "train_loss" in table
    assert pickle.loads(pickle.dumps(fitted)).predict(X).tolist() == fitted.predict(X).tolist()


def test_a_fit_that_is_killed_prints_its_error_only(capsys):
    with killed_at(0):
        model(verbose=1).fit(X, Y)
    said = "the positive class is 1\nlr 0.05, 3 epochs, 12 updates, batches of 4\n"
    assert capsys.readouterr().out == said


def test_a_clone_calls_the_same_function_with_the_estimator_after_each_epoch():
    seen = []
    callback = AfterEpoch(lambda draft: seen.append((len(draft.net_.history), draft.score(X, Y))))
    fitted = model(callbacks=[clone(callback, safe=False)]).fit(X, Y)
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == fitted.score(X, Y)
    assert dict(fitted.net_.callbacks_)["AfterEpoch"].model is None
