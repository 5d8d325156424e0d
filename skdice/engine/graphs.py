"""Work of a GPU that is recorded once for each shape as a CUDA graph, and then replayed.

An update is thousands of kernels of some microseconds, and to launch one takes Python longer than
that. A graph is one launch. It reads its inputs where they were when it was recorded, so batches
are copied there. Without this module (``net_params={"cuda_graphs": False}``) the same function is
called for each batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback

from skdice._compat import end_allocating, expect_eager_steps
from skdice._lock import PROCESS
from skdice.engine import ranks
from skdice.engine.devices import random_states, set_random_states, to_device
from skdice.engine.encoded import Update
from skdice.engine.layouts.layout import Layout, MicroBatch

SEVERAL = "an update has several micro-batches, or texts of several windows"
EAGER_RUNS = 2  # of a shape before it is recorded
MOST = 32  # shapes that are recorded; others are rare
Tensors = tuple[torch.Tensor, ...]
Replay = Callable[[], Tensors]


@dataclass(eq=False)
class Shape:
    """Inputs of one shape, in tensors that stay, and how often they were used."""

    inputs: dict[str, torch.Tensor]
    runs: int = 0
    replay: Replay | None = None


@dataclass(eq=False)
class Graphs:
    """A function of tensors, by name, that is recorded once for each of their shapes.

    Parameters
    ----------
    function : callable
        From a dict of tensors on the device to a tuple of tensors. What it changes, it changes in
        place.
    device : str
    reason : str or None, default=None
        Why nothing is recorded, if that is known; later also what was found to prevent it.
    keep : callable or None, default=None
        Called before a recording. It gives a function that takes back what Python changed in a
        recording that failed; what tensors hold stays as it was, as nothing has run.
    """

    function: Callable[[dict[str, torch.Tensor]], Tensors]
    device: str
    reason: str | None = None
    keep: Callable[[], Callable[[], None]] | None = None
    shapes: dict[Any, Shape] = field(default_factory=dict, init=False)
    pool: Any = field(default=None, init=False)
    stream: Any = field(default=None, init=False)
    lock: Any = field(default_factory=threading.RLock, init=False)

    def __post_init__(self) -> None:
        if torch.device(self.device).type == "cuda":
            # One memory for all graphs: what they give is copied before the next one runs.
            self.pool = torch.cuda.graph_pool_handle()
            self.stream = torch.cuda.Stream(torch.device(self.device))

    def close(self) -> None:
        """Give the GPU its memory back: torch keeps it, and no other recording can use it."""
        recorded = any(shape.replay is not None for shape in self.shapes.values())
        self.shapes.clear()
        if recorded:
            with PROCESS:  # not while another thread records
                torch.cuda.empty_cache()

    def __call__(self, inputs: Mapping[str, Any]) -> Tensors:
        """Return what the function gives for the tensors among these inputs, wherever they are."""
        given = {name: v for name, v in inputs.items() if isinstance(v, torch.Tensor)}
        with self.lock:
            shape = self._shape(given)
            if shape is None:
                return self.function({k: to_device(v, self.device) for k, v in given.items()})
            for name, values in given.items():
                sent = shape.inputs[name].is_cuda and not values.is_cuda
                moved = values.pin_memory() if sent else values
                shape.inputs[name].copy_(moved, non_blocking=True)
            if shape.replay is None and shape.runs >= EAGER_RUNS and self.reason is None:
                self._record(shape)
            if shape.replay is not None:
                return tuple(values.clone() for values in shape.replay())
            shape.runs += 1
            return self._run_eagerly(shape)

    def _shape(self, given: Mapping[str, torch.Tensor]) -> Shape | None:
        key = tuple((name, values.shape, values.dtype) for name, values in given.items())
        if key not in self.shapes:
            if len(self.shapes) >= MOST:
                return None
            inputs = {n: torch.empty_like(v, device=self.device) for n, v in given.items()}
            self.shapes[key] = Shape(inputs)
        return self.shapes[key]

    def _run_eagerly(self, shape: Shape) -> Tensors:
        """On the stream that will record, as torch asks for."""
        if self.stream is None:
            return self.function(shape.inputs)
        here = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            found = self.function(shape.inputs)
        here.wait_stream(self.stream)
        return found

    def _record(self, shape: Shape) -> None:
        take_back = None if self.keep is None else self.keep()
        try:
            with PROCESS:  # nobody else may set the GPU's random numbers meanwhile
                shape.replay = record(self.function, shape.inputs, self.pool, self.stream)
        except RuntimeError as error:
            self.reason = f"no graph could be recorded ({str(error).partition(chr(10))[0]})"
            if take_back is not None:
                take_back()


def record(
    function: Callable[[dict[str, torch.Tensor]], Tensors],
    inputs: dict[str, torch.Tensor],
    pool: Any,
    stream: Any,
) -> Replay:
    """Record what a function does with inputs that stay where they are."""
    graph, device = torch.cuda.CUDAGraph(), stream.device
    draws = torch.cuda.default_generators[device.index]
    before = draws.clone_state()
    torch.cuda.synchronize(device)
    try:
        # Not `torch.cuda.graph`, which gives all free memory back first: to get it again takes as
        # long as many updates. Other threads may do as they like meanwhile.
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                found = function(inputs)
            except BaseException:
                with suppress(RuntimeError):  # the first error says more
                    graph.capture_end()
                raise
            graph.capture_end()
    except BaseException:
        # What torch leaves as inside a recording, where nothing else can be drawn or kept.
        draws.graphsafe_set_state(before)
        end_allocating(device.index, pool)
        raise

    def replay() -> Tensors:
        graph.replay()
        return found

    return replay


# ---- updates


class Recorded:
    """The updates of a fit, see `FineTuningNet.inner_step`."""

    def __init__(self, net: NeuralNet, layout: Layout | None) -> None:
        self.net, self.layout = net, layout
        self.graphs = Graphs(self._update, net.device, why_eager(net, layout), self._keep)

    def __call__(self, batch: Update) -> Tensors:
        """Loss and logits of an update."""
        given = None if self.graphs.reason else flat(batch)
        if given is None:
            self.graphs.reason = self.graphs.reason or SEVERAL
            return cast(Tensors, self.net.inner_step(batch))
        self.rows = batch.rows
        return self.graphs(given)

    def tell(self) -> None:
        """Note in the history why updates are not recorded, and print it once."""
        net, reason = self.net, self.graphs.reason
        if net.verbose and not any("eager" in epoch for epoch in net.history[net.first_epoch_ :]):
            print(f"updates are not recorded as CUDA graphs: {reason}", flush=True)
        net.history.record("eager", reason)

    def _update(self, inputs: dict[str, torch.Tensor]) -> Tensors:
        group: dict[str, Any] = dict(inputs)
        if self.layout is not None:
            group["layout"] = self.layout
        target, weight = group.pop("target"), group.pop("weight", None)
        part = MicroBatch([group], self.rows)
        return cast(Tensors, self.net.inner_step(Update([part], target, weight, self.rows)))

    def _keep(self) -> Callable[[], None]:
        net = self.net
        states = random_states(net.device)

        def take_back() -> None:
            set_random_states(states, net.device)
            kind = torch.device(net.device).type
            scaler = torch.amp.GradScaler(kind, enabled=net.scaler_.is_enabled())
            scaler.load_state_dict(net.scaler_.state_dict())  # not in the middle of an update
            net.scaler_ = scaler

        return take_back


@contextmanager
def recorded_updates(net: NeuralNet, layout: Layout | None) -> Iterator[None]:
    """Let a net record its updates in a block, on a GPU."""
    updates = net.recorded_ = Recorded(net, layout)
    try:
        with rates_on_device(net.optimizer_):
            yield
    finally:
        net.recorded_ = None
        updates.graphs.close()


def why_eager(net: NeuralNet, layout: Layout | None) -> str | None:
    """Why the updates of a fit are not recorded; None if they are, until a recording is refused.

    Here is what a recording would get wrong without an error. What it refuses, it says itself.
    """
    reasons = {
        "cuda_graphs is False": not net.cuda_graphs,
        "several processes train together": ranks.n_processes() > 1,
        "gradient_checkpointing computes layers twice": getattr(net.module_, "checkpointed", False),
        "the loss has no heeds_weights": layout is not None and not layout.recurs,
        "the optimizer is no fused Adam or AdamW": not can_be_recorded(net.optimizer_),
        "a callback looks at gradients": any(
            type(callback).on_grad_computed is not Callback.on_grad_computed
            for _, callback in net.callbacks_
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def can_be_recorded(optimizer: torch.optim.Optimizer) -> bool:
    """Return True if it keeps its steps and its rate on the device, and skips an update there."""
    return "capturable" in optimizer.defaults and bool(optimizer.defaults.get("fused"))


def flat(batch: Update) -> dict[str, Any] | None:
    """What an update reads, by name; None if that is not the tensors of one micro-batch."""
    if len(batch.parts) > 1 or len(batch.parts[0].groups) > 1 or batch.windows is not None:
        return None
    (group,) = batch.parts[0].groups
    given = {**group, "target": batch.target, "weight": batch.weight}
    others = {name for name, v in given.items() if not (v is None or isinstance(v, torch.Tensor))}
    return given if others <= {"layout"} else None


@contextmanager
def rates_on_device(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Keep the rates of an optimiser where graphs read them; the schedule writes them there."""
    if not can_be_recorded(optimizer):
        yield
        return
    for group in optimizer.param_groups:
        device = group["params"][0].device
        # As the kernels read it.
        kind = torch.float32 if device.type == "cuda" else torch.float64
        group["lr"] = torch.tensor(float(group["lr"]), dtype=kind, device=device)
        group["capturable"] = device.type == "cuda"
    expect_eager_steps(optimizer)
    try:
        yield
    finally:
        for group in optimizer.param_groups:
            group["lr"], group["capturable"] = float(group["lr"]), False
