"""What a fit says while it runs."""

from __future__ import annotations

import pickle
import re
import time
import types

import pytest
from sklearn.base import clone
from skorch.callbacks import Callback

from skdice import DiceClassifier, _progress
from skdice._progress import duration
from skdice.engine.callbacks import AfterEpoch
from tests.fits import each_update, killed_at

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 4, [0, 0, 1, 1] * 4


def model(**params):
    return DiceClassifier(max_epochs=3, batch_size=4, random_state=0, **params)


class Slow(Callback):
    def on_batch_end(self, net, **kwargs):
        time.sleep(0.06)  # a bar is drawn ten times a second at most


@pytest.fixture
def minutes(monkeypatch):
    """A clock on which each update takes a minute."""
    clock = types.SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(_progress, "time", clock)

    def tick():
        clock.now += 60

    with each_update(tick):
        yield


def test_nothing_is_said_unless_asked(capsys, terminal):
    terminal()
    model().fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_a_log_file_of_a_short_fit_gets_no_such_line(capsys):
    model(verbose=1).fit(X, Y)
    assert "left" not in capsys.readouterr().out  # it took less than a minute


def test_a_log_file_gets_a_line_a_minute_and_no_control_codes(capsys, minutes):
    model(verbose=1).fit(X, Y)
    slow, errors = capsys.readouterr()
    assert re.findall(r"update (\d+) of 12, .+ left", slow) == [str(i) for i in range(1, 13)]
    assert "update 2 of 12, 10 min 00 s left" in slow
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


def test_a_terminal_gets_a_bar_with_the_time_left(capsys, terminal):
    terminal()
    fitted = model(verbose=1, callbacks=[Slow()]).fit(X, Y)
    table, bar = capsys.readouterr()
    assert re.search(r"epoch \d.*\d+/12 \[\d\d:\d\d<", bar)
    assert "train_loss" in table
    assert pickle.loads(pickle.dumps(fitted)).predict(X).tolist() == fitted.predict(X).tolist()


def test_the_bar_goes_away_after_an_error(capsys, terminal):
    terminal()
    with killed_at(0) as killed:
        model(verbose=1).fit(X, Y)
    bar = capsys.readouterr().err
    assert "0/12" in bar
    assert bar.endswith("\r")  # and not for being forgotten: the traceback holds it
    assert killed.traceback


def test_times():
    assert [duration(seconds) for seconds in (0.2, 7.4, 59.6, 61, 3600 * 5 + 61)] == [
        "1 s",
        "7 s",
        "1 min 00 s",
        "1 min 01 s",
        "5 h 01 min",
    ]


def told(capsys):
    """What is printed, but for the table of epochs and the line a minute."""
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if "  " not in line and not line.startswith("update")]


def test_the_time_of_a_fit_is_told_once(capsys, minutes):
    model(verbose=1).fit(X, Y)
    assert told(capsys) == [
        "lr 0.05, 3 epochs, 12 updates, batches of 4",
        "the fit takes about 12 min 00 s; max_epochs=1, about 4 min 00 s",
    ]
    stops = model(verbose=1, early_stopping=True, validation_fraction=0.5)
    stops.set_params(max_epochs=2).fit([[i] for i in range(16)], Y)
    assert told(capsys)[1] == "the fit takes about 4 min 00 s (without validation)"


@pytest.mark.parametrize(("n_rows", "n_minutes"), [(4, 1), (8, 2), (12, 3)])
def test_the_time_of_a_fit_of_few_updates_is_told(capsys, minutes, n_rows, n_minutes):
    model(verbose=1).set_params(max_epochs=1).fit(X[:n_rows], Y[:n_rows])
    assert told(capsys)[1:] == [f"the fit takes about {n_minutes} min 00 s"]


@pytest.mark.parametrize("done", [1, 4, 7, 11])
def test_a_fit_that_goes_on_tells_what_is_left(capsys, minutes, tmp_path, done):
    stored = model(verbose=1, checkpoint_dir=tmp_path, checkpoint_every=1)
    with killed_at(done):
        stored.fit(X, Y)
    capsys.readouterr()
    clone(stored).fit(X, Y)
    # The second update tells it, unless the first was the last.
    left = max(12 - done - 2, 0)
    assert told(capsys) == [
        f"lr 0.05, 3 epochs, 12 updates, batches of 4, going on after update {done}",
        f"about {left} min 00 s left" if left else "about 1 s left",
    ]
    clone(stored).fit(X, Y)
    assert told(capsys) == ["this fit was finished before: the result is in checkpoint_dir"]


def test_a_clone_calls_the_same_function_after_each_epoch():
    epochs = []
    callback = AfterEpoch(lambda net: epochs.append(len(net.history)))
    model(callbacks=[clone(callback, safe=False)]).fit(X, Y)
    assert epochs == [1, 2, 3]
