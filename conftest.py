"""Where there is a GPU, tests and doctests still run on the CPU, but for those marked `gpu`.

Exact numbers are those of a CPU in float32; on a GPU ``device="auto"`` trains in bf16, with other
dropout. ``SKDICE_TESTS_ON_GPU=1 make test`` runs all on the GPU: look for errors there, and not at
digits.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


# Around fixtures, too, since those of a module fit models.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hide the GPU from a test, from the libraries it uses and from processes that it starts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if item.path.name == "README.md":  # its examples write files
            patch.chdir(folder)
        if not (item.get_closest_marker("gpu") or "SKDICE_TESTS_ON_GPU" in os.environ):
            patch.setenv("CUDA_VISIBLE_DEVICES", "")
            patch.setattr(torch.cuda, "is_available", lambda: False)
            patch.setattr(torch.backends.mps, "is_available", lambda: False)
        return (yield)
