"""What a fit says while it runs."""

from __future__ import annotations

import pickle
import re
import sys
import time

import pytest
from sklearn.base import clone
from skorch.callbacks import Callback

from skdice import DiceClassifier
from skdice.engine.callbacks import AfterEpoch, ProgressBar, _time

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 4, [0, 0, 1, 1] * 4


def model(**params):
    return DiceClassifier(max_epochs=3, batch_size=4, random_state=0, **params)


class Slow(Callback):
    def on_batch_end(self, net, **kwargs):
        time.sleep(0.06)  # a bar is drawn ten times a second at most


class Stop(Callback):
    def on_batch_begin(self, net, **kwargs):
        raise KeyboardInterrupt


def test_nothing_is_said_unless_asked(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    model().fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_a_log_file_gets_a_line_a_minute_and_no_control_codes(capsys, monkeypatch):
    model(verbose=1).fit(X, Y)
    quick, _ = capsys.readouterr()
    assert "left" not in quick  # it took less than a minute
    monkeypatch.setattr(ProgressBar, "EVERY", 0.0)
    model(verbose=1).fit(X, Y)
    slow, errors = capsys.readouterr()
    assert re.findall(r"update (\d+) of 12, 0 min 0\d s left", slow) == [
        str(i) for i in range(1, 13)
    ]
    assert errors == ""
    assert "train_loss" in slow
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", slow)


def test_the_table_of_epochs_has_the_score_first_and_a_rate_that_can_be_read(capsys):
    class Records(Callback):
        def on_epoch_end(self, net, **kwargs):
            net.history.record("weight_norm", 1.25)

    fitted = model(
        verbose=1, lr=3e-6, early_stopping=True, validation_fraction=0.5, callbacks=[Records()]
    ).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()[-4:]
    header, *epochs = (line.split() for line in lines)
    assert header == [
        *("epoch", "valid_score", "train_loss", "weight_norm", "lr", "skipped", "dur")
    ]
    assert [float(cells[4]) for cells in epochs] == pytest.approx(
        [epoch["lr"] for epoch in fitted.history_], rel=0.06
    )
    assert [float(cells[1]) for cells in epochs] == pytest.approx(
        [epoch["valid_score"] for epoch in fitted.history_], abs=1e-4
    )
    assert all(float(cells[4]) > 0 for cells in epochs)
    assert max(map(len, lines)) < 80


def test_a_terminal_gets_a_bar_with_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fitted = model(verbose=1, callbacks=[Slow()]).fit(X, Y)
    table, bar = capsys.readouterr()
    assert re.search(r"epoch \d.*\d+/12 \[\d\d:\d\d<", bar)
    assert "train_loss" in table
    assert pickle.loads(pickle.dumps(fitted)).predict(X).tolist() == fitted.predict(X).tolist()


def test_the_bar_goes_away_after_an_error(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    closed = []
    monkeypatch.setattr("tqdm.std.tqdm.close", lambda bar: closed.append(bar.n))
    with pytest.raises(KeyboardInterrupt) as stopped:
        model(verbose=1, callbacks=[Stop()]).fit(X, Y)
    assert closed  # and not for being forgotten: the traceback holds it
    assert stopped.traceback


def test_times():
    assert (_time(59.6), _time(61), _time(3600 * 5 + 61)) == (
        "1 min 00 s",
        "1 min 01 s",
        "5 h 01 min",
    )


def test_a_clone_calls_the_same_function_after_each_epoch():
    epochs = []
    callback = AfterEpoch(lambda net: epochs.append(len(net.history)))
    model(callbacks=[clone(callback, safe=False)]).fit(X, Y)
    assert epochs == [1, 2, 3]
