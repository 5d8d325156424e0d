"""Processes that tests start: forked from one that has imported everything once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running

# What a process would import by itself, each time for seconds.
IMPORTED = (
    *("pytest", "torch.distributed", "transformers.models.bert.modeling_bert"),
    *("skdice.engine.net", "skdice.estimators", "skdice.model_selection", "skdice.losses"),
)


def forkserver() -> BaseContext:
    """The context of processes that share no memory and no threads with the test's own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    ensure_running()  # before anybody gives another list
    return context
