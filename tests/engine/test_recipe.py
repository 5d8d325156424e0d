"""The rule by which a fit chooses its rate and its number of epochs."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING, ElectraConfig, ElectraModel

from skdice import DiceSequenceClassifier
from skdice.engine.recipe import (
    LEAST_EPOCHS,
    LEAST_UPDATES,
    MOST_EPOCHS,
    MOST_UPDATES,
    RARE_ROWS,
    RATES_OF_KINDS,
    UPDATES,
    check_optimizer,
    choose_epochs,
    choose_rate,
)


@pytest.mark.parametrize("size", [1, 8, 32, 256])
def test_few_rows_have_many_passes_and_many_rows_few(size):
    chosen = [choose_epochs(n, size) for n in range(1, 3000, 7)]
    assert chosen == sorted(chosen, reverse=True)
    for n in (1, 10, 333, 2_000, 50_000, 10**6, 10**9):
        epochs, updates = choose_epochs(n, size), -(-n // size)
        assert 1 <= epochs <= MOST_EPOCHS
        if epochs < MOST_EPOCHS and epochs > LEAST_EPOCHS:
            assert abs(epochs * updates - UPDATES) <= updates / 2
        if epochs < LEAST_EPOCHS and epochs > 1:
            assert abs(epochs * updates - MOST_UPDATES) <= updates / 2
        if epochs == 1:
            assert updates >= MOST_UPDATES / 1.5


@given(
    n_rows=st.integers(2, 10**7),
    share=st.floats(1e-4, 0.5),
    size=st.sampled_from([1, 8, 32, 256]),
    rate=st.sampled_from([1e-3, 1e-4, 5e-5, 2e-5]),
)
def test_a_fit_ends_once_the_rarer_class_was_seen(n_rows, share, size, rate):
    n_rare, longest, updates = n_rows * share, choose_epochs(n_rows, size), -(-n_rows // size)
    chosen = choose_epochs(n_rows, size, n_rare, rate)
    assert chosen <= longest
    if chosen < longest:
        assert chosen >= LEAST_EPOCHS
        assert (chosen + 0.5) * max(n_rare, 1) >= RARE_ROWS
        assert (chosen + 0.5) * updates * min(rate, 1e-4) >= LEAST_UPDATES * 1e-4
    if chosen > LEAST_EPOCHS:  # no longer than it takes
        seen = (chosen - 1) * n_rare >= RARE_ROWS
        assert not (seen and (chosen - 1) * updates * min(rate, 1e-4) >= LEAST_UPDATES * 1e-4)
    rarer = choose_epochs(n_rows, size, n_rare / 2, rate)
    assert rarer >= chosen


def test_the_wider_the_encoder_the_smaller_the_rate():
    rates = [choose_rate(width) for width in (16, 384, 768, 1024, 4096)]
    assert rates == sorted(rates, reverse=True)
    assert choose_rate(384) == 3e-4
    assert choose_rate(384, two_classes=True) == 1e-4
    for width in (384, 768, 1024):
        assert choose_rate(width, adapted=True) > choose_rate(width, 6) == choose_rate(width)
        assert choose_rate(width, "encoder") > choose_rate(width)
        assert choose_rate(width, constant=True) < choose_rate(width)
        assert choose_rate(width, two_classes=True) <= choose_rate(width)
        for how in ({"adapted": True}, {"frozen": "encoder"}):
            assert choose_rate(width, two_classes=True, **how) == choose_rate(width, **how)


@pytest.mark.parametrize(
    ("size", "factor"), [(1, 0.177), (2, 0.25), (8, 0.5), (16, 0.707), (32, 1), (64, 1), (128, 1)]
)
def test_the_rate_follows_a_small_batch(size, factor):
    for how in ({}, {"two_classes": True}, {"adapted": True}, {"kind": "xlnet"}):
        for width in (384, 768, 1024):
            rate = choose_rate(width, **how)
            found = choose_rate(width, **how, batch_share=size / 32)
            assert found == pytest.approx(rate * factor, rel=0.05)  # two digits
            assert size < 32 or found == rate
    assert choose_rate(384, constant=True, batch_share=size / 32) <= choose_rate(384, constant=True)
    assert choose_rate(384, "encoder", batch_share=size / 32) == choose_rate(384, "encoder")


def test_rates_of_architectures_are_those_of_their_authors():
    for kind, rates in RATES_OF_KINDS.items():
        assert kind in CONFIG_MAPPING
        assert (choose_rate(768, kind=kind), choose_rate(1024, kind=kind)) == rates
        assert rates[0] >= rates[1]
        assert choose_rate(384, kind=kind) == choose_rate(384)
        assert choose_rate(768, kind=kind, adapted=True) == choose_rate(768, adapted=True)
        assert choose_rate(768, "encoder", kind=kind) == choose_rate(768, "encoder")


def test_a_fit_asks_for_the_rate_of_its_architecture(tmp_path, tiny_backbone):
    config = ElectraConfig(hidden_size=520, num_attention_heads=2, num_hidden_layers=1)
    config.vocab_size, config.intermediate_size, config.embedding_size = 1000, 8, 8
    ElectraModel(config).save_pretrained(tmp_path)
    for file in Path(tiny_backbone).glob("*token*"):
        shutil.copy(file, tmp_path)
    clf = DiceSequenceClassifier(backbone=str(tmp_path), max_epochs=1)
    assert clf.fit(["a", "b"] * 4, [0, 1] * 4).lr_ == RATES_OF_KINDS["electra"][0]


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "Adafactor"])
def test_a_rate_is_known_for_kin_of_adam_alone(name):
    kin = [torch.optim.Adam, torch.optim.RAdam, functools.partial(torch.optim.AdamW, eps=1e-6)]
    for optimizer in kin:
        check_optimizer(SimpleNamespace(net_params={"optimizer": optimizer}, lr="auto"))
    other = {"optimizer": getattr(torch.optim, name)}
    check_optimizer(SimpleNamespace(net_params=other, lr=0.1))
    with pytest.raises(ValueError, match=r"lr='auto' with net_params: optimizer=.*give lr"):
        check_optimizer(SimpleNamespace(net_params=other, lr="auto"))


def test_the_guide_shows_the_rates_of_small_batches():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    table = page.partition("| rows of an update |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.split()[0] for cell in row.strip("| ").split("|")] for row in table]
    assert len(rows) == 3
    for size, of_many, of_two in rows:
        share = int(size) / 32
        found = choose_rate(384, batch_share=share)
        assert (found, choose_rate(384, two_classes=True, batch_share=share)) == (
            float(of_many), float(of_two),
        )  # fmt: skip


def test_the_guide_shows_the_passes_of_two_classes():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    table = page.partition("| of the rarer class |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[int(cell.replace(",", "")) for cell in row.strip("| ").split("|")] for row in table]
    assert len(rows) == 6
    for n_rows, n_rare, by_rows, made in rows:
        assert (choose_epochs(n_rows, 32), choose_epochs(n_rows, 32, n_rare)) == (by_rows, made)
