"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def tiny_backbone(tiny_backbones: dict[str, str]) -> str:
    """A folder with a random BERT of two layers: what is cut or cached between layers is seen."""
    return tiny_backbones["bert"]
