"""The rule by which a fit chooses its rate and its number of epochs."""

from __future__ import annotations

import functools

import pytest
import torch

from skdice.engine.recipe import (
    LEAST_EPOCHS,
    MOST_EPOCHS,
    MOST_UPDATES,
    UPDATES,
    choose_epochs,
    choose_rate,
    is_adam,
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


def test_the_wider_the_encoder_the_smaller_the_rate():
    rates = [choose_rate(width) for width in (16, 384, 768, 1024, 4096)]
    assert rates == sorted(rates, reverse=True)
    assert choose_rate(384) == 3e-4
    for width in (384, 768, 1024):
        assert choose_rate(width, adapted=True) > choose_rate(width, 6) == choose_rate(width)
        assert choose_rate(width, "encoder") > choose_rate(width)
        assert choose_rate(width, constant=True) < choose_rate(width)


def test_kin_of_adam_are_known_by_their_names():
    known = [torch.optim.Adam, torch.optim.AdamW, torch.optim.RAdam]
    assert all(map(is_adam, [*known, functools.partial(torch.optim.AdamW, eps=1e-6)]))
    assert not any(map(is_adam, [torch.optim.SGD, torch.optim.Adagrad, lambda p: None]))
