"""One model on two processes: it ends where one process with batches twice as large ends."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import socket
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp

from skdice import (
    DiceClassifier,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine import ranks
from skdice.engine.net import FineTuningNet
from skdice.model_selection import LossSearchCV
from tests.fits import killed_at, tensors_of, word_tables_from
from tests.processes import forkserver

TEXTS = [
    "win money now",
    "hello anna",
    "free prize call now",
    "lunch today",
    "good meeting in rome",
]
TAGGED = [
    "anna|B-PER went to paris|B-LOC .", "the bus was old", "rain today",
    "bob|B-PER dan|I-PER works at acme|B-ORG", "the market in oslo|B-LOC is new .",
]  # fmt: skip
CONTEXTS = ["anna went to paris today", "the bus was old", "bob met carla near the river"]
ANSWERS = [[(13, "paris")], [], [(19, "the river"), (23, "river")]]
WEIGHTS = {"sample_weight": np.linspace(0.5, 2, 17)}


def data():
    """Inputs and targets of each task, in many rows."""
    rows = [[w.split("|") for w in text.split()] for text in TAGGED * 5]
    sentences = [[w[0] for w in row] for row in rows]
    tags = [[w[1] if len(w) > 1 else "O" for w in row] for row in rows]
    numbers = np.random.default_rng(0).normal(size=(25, 4))
    texts = TEXTS * 5
    spans = [[("PER", 0, 1)] if row[0][0] == "anna" else [] for row in rows]
    questions = [("where", context) for context in CONTEXTS * 9]
    return {
        DiceTokenClassifier: (sentences, tags),
        DiceSequenceClassifier: (texts, ["spam" if "now" in t else "ham" for t in texts]),
        DiceQuestionAnswerer: (questions, ANSWERS * 9),
        DiceMRCTagger: (sentences, spans),
        DiceClassifier: (numbers, (numbers[:, 0] > 0.5).astype(int)),
    }


# Name -> estimator, its parameters, number of rows, arguments of `fit`. Updates take 8 rows, so
# that 17 rows leave one row to the last, and the second process none. Every loss by itself is in
# tests/losses/test_distributed.py.
STOPS = {"early_stopping": True, "n_iter_no_change": 1, "max_epochs": 4, "lr": 0.01}
CASES = {
    **{loss: (DiceTokenClassifier, {"loss": loss}, 17, {}) for loss in ("ce", "dsc")},
    "last update short": (DiceTokenClassifier, {"loss": "dice"}, 21, {}),
    "accumulation": (DiceTokenClassifier, {"loss": "dsc", "gradient_accumulation": 2}, 24, {}),
    "two last": (DiceTokenClassifier, {"loss": "ce_dice", "gradient_accumulation": 2}, 17, {}),
    "weights": (DiceTokenClassifier, {}, 17, WEIGHTS),
    "unknown tags": (DiceTokenClassifier, {}, 17, {}),
    "used words only": (DiceTokenClassifier, {"net_params": None}, 17, {}),
    "no clipping": (DiceTokenClassifier, {"max_grad_norm": None}, 17, {}),
    "early stopping": (DiceTokenClassifier, STOPS, 25, {}),
    "texts": (DiceSequenceClassifier, {}, 17, {}),
    "texts, weights": (DiceSequenceClassifier, {"loss": "focal"}, 17, WEIGHTS),
    "answers": (DiceQuestionAnswerer, {"loss": "dsc"}, 17, {}),
    "answers, ce": (DiceQuestionAnswerer, {"loss": "ce"}, 17, {}),
    "answers, both": (DiceQuestionAnswerer, {"loss": "ce_dice"}, 17, WEIGHTS),
    "spans": (DiceMRCTagger, {"queries": {"PER": "who"}, "answerable_weight": 0.5}, 17, {}),
    "numbers": (DiceClassifier, {"loss": "dsc", "hidden_layer_sizes": (3,)}, 17, {}),
    "numbers, weights": (DiceClassifier, {}, 17, WEIGHTS),
    "numbers, memory": (DiceClassifier, {"loss": "dice", "max_epochs": 12}, 13, {}),
}


def fit(name, backbone, batch_size, **params):
    kind, own, n_rows, arguments = CASES[name]
    settings = {"batch_size": batch_size, "max_epochs": 2, "dropout": 0.0, "random_state": 0}
    # Adam makes large steps of gradients that are nothing but rounding.
    settings["net_params"] = {"optimizer__eps": 1e-4}
    if kind is not DiceClassifier:
        settings |= {"backbone": backbone, "lr": 1e-3}
    if own.get("gradient_accumulation"):
        settings["batch_size"] //= 2
    X, y = data()[kind]
    if name == "unknown tags":  # of some words, and of whole sentences
        y = [[tag if (i + j) % 3 and i % 4 else None for j, tag in enumerate(row)]
             for i, row in enumerate(y)]  # fmt: skip
    model = kind(**settings | own | params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with word_tables_from(1):
            return model.fit(X[:n_rows], y[:n_rows], **arguments)


def outcome(model):
    history = [
        {k: v for k, v in epoch.items() if k in ("train_loss", "valid_score", "skipped_updates")}
        for epoch in model.history_
    ]
    return tensors_of(model), history


def killed_and_resumed(backbone, folder):
    """A fit that goes on from its third update; dropout as it was without the interruption."""
    settings = {"checkpoint_dir": folder, "checkpoint_every": 0, "dropout": 0.3}
    with killed_at(3):
        fit("texts", backbone, 4, **settings)
    return fit("texts", backbone, 4, **settings)


def with_a_bad_update(backbone, number):
    """A fit in which the second process finds a loss that is NaN, once."""
    loss, called = FineTuningNet.get_loss, []

    def bad(net, *args):
        called.append(1)
        found = loss(net, *args)
        return found * torch.nan if number == 1 and len(called) == 2 else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FineTuningNet, "get_loss", bad)
        return fit("texts", backbone, 4)


def work(number, port, folder, backbone, backbone_with_dropout):
    os.environ.pop(ranks.OWNER, None)  # another test of this process may have set it
    os.environ.update(
        RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    torch.set_num_threads(1)
    found = {name: outcome(fit(name, backbone, 4)) for name in CASES}
    found["no seed"] = outcome(fit("texts", backbone, 4, random_state=None))
    generator = np.random.RandomState(number)  # which differs
    found["generator"] = outcome(fit("texts", backbone, 4, random_state=generator))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        noisy = fit("texts", backbone_with_dropout, 4, dropout=0.3, verbose=1)
    found["printed"] = printed.getvalue()
    found["dropout"] = outcome(noisy)
    resumed = killed_and_resumed(backbone_with_dropout, Path(folder) / f"checkpoints of {number}")
    found["resumed"] = outcome(resumed)
    found["bad"] = outcome(with_a_bad_update(backbone, number))
    more = fit("texts", backbone, 4)
    X, y = data()[DiceSequenceClassifier]
    more.partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    found["partial_fit"] = outcome(more)
    if number == 0:  # by itself: predictions wait for nobody
        found["predicted"] = more.predict_proba(X)
    with pytest.raises(ValueError, match="different training data"):
        noisy.fit(X, y if number == 0 else y[::-1])
    torch.save(found, Path(folder) / f"{number}.pt")
    torch.distributed.barrier()


@pytest.mark.slow
def test_two_processes_end_where_one_ends_with_batches_twice_as_large(
    tmp_path, calm_backbone, tiny_backbone
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forkserver()
    arguments = port, str(tmp_path), calm_backbone, tiny_backbone
    mp.start_processes(work, args=arguments, nprocs=2, start_method="forkserver")
    one, other = (torch.load(tmp_path / f"{n}.pt", weights_only=False) for n in (0, 1))
    printed = one.pop("printed")
    assert printed.count("train_loss") == 1
    assert "2 epochs, 6 updates, batches of 8" in printed
    assert other.pop("printed") == ""
    written = [list((tmp_path / f"checkpoints of {n}").glob("*.pt")) for n in (0, 1)]
    assert list(map(len, written)) == [1, 0]
    for name in other:
        torch.testing.assert_close(one[name][0], other[name][0], atol=0, rtol=0)
        assert one[name][1] == other[name][1]
    assert [epoch["skipped_updates"] for epoch in one["bad"][1]] == [1, 0]
    assert one["resumed"][1] == one["dropout"][1]
    torch.testing.assert_close(one["resumed"][0], one["dropout"][0], atol=0, rtol=0)
    for name in CASES:
        weights, history = outcome(fit(name, calm_backbone, 8))
        torch.testing.assert_close(one[name][0], weights, atol=1e-5, rtol=0)
        assert len(history) == len(one[name][1])
        for epoch, theirs in zip(history, one[name][1], strict=True):
            assert theirs == pytest.approx(epoch, abs=1e-5)
    alone = fit("texts", calm_backbone, 8)
    X, y = data()[DiceSequenceClassifier]
    alone.partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    np.testing.assert_allclose(one["predicted"], alone.predict_proba(X), atol=1e-5)


def test_rows_are_divided_among_processes(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv(ranks.OWNER, str(os.getpid()))
    rows = np.arange(10, 17)
    parts = []
    for number in range(3):
        monkeypatch.setenv("RANK", str(number))
        own, counts = ranks.rows_of_rank(rows)
        assert counts
        parts.append(own)
    assert np.array_equal(np.concatenate(parts), rows)
    own, counts = ranks.rows_of_rank(rows[:2])
    assert (own.tolist(), counts) == ([10], False)


def alone():
    """What a worker finds."""
    return ranks.n_processes(), ranks.join(), ranks.rank()


def test_workers_train_alone(monkeypatch):
    """Those of multiprocessing, which Dask starts, too; joblib's inherit as spawned ones do."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ranks.n_processes() == ranks.join() == 1  # a launcher also sets RANK
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv(ranks.OWNER, raising=False)
    assert (ranks.n_processes(), ranks.rank()) == (2, 1)
    for start in ("fork", "spawn"):
        with multiprocessing.get_context(start).Pool(1) as pool:
            assert pool.apply_async(alone).get(60) == (1, 1, 0)


def test_a_search_does_not_run_in_processes_that_train_one_model(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv(ranks.OWNER, raising=False)
    monkeypatch.setenv("RANK", "0")
    X, y = data()[DiceClassifier]
    search = LossSearchCV(DiceClassifier(), {"loss": ["ce", "dice"]}, n_trials=2)
    with pytest.raises(RuntimeError, match="2 processes were launched to train one"):
        search.fit(X, y)
