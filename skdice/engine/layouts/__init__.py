"""Layouts of a batch: padded, grouped on a CPU, in rows on a GPU.

`Layout` is what module and net know. Which one a fit or a prediction has, is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skorch import NeuralNet
from torch import nn

from skdice.engine import devices
from skdice.engine.layouts.architectures import packable
from skdice.engine.layouts.grouped import Grouped
from skdice.engine.layouts.layout import Layout, Padded, Padding, run_cost
from skdice.engine.layouts.rows import Recurring, Rows, RowsOfOne
from skdice.losses.base import losses_in

if TYPE_CHECKING:
    from skdice.engine.encoded import EncodedDataset


def layout_to_train(net: NeuralNet, dataset: EncodedDataset) -> Layout:
    """The layout of a fit's batches.

    Parameters
    ----------
    net : FineTuningNet
        Its ``pack`` says whether to do without padding where the architecture can. In rows padding
        has the weight 0, which only losses that heed weights may be given.
    dataset : EncodedDataset
    """
    module, padding, device, criterion = net.module_, net.padding, net.device, net.criterion_
    if devices.is_gpu(device) and (dataset.pools_windows or leaves_out_padding(criterion)):
        rows = _rows(module, padding, net.pack, getattr(criterion, "padding_target", 0))
        if dataset.pools_windows:  # whose micro-batches have any number of them
            return rows.of_length(int(dataset.lengths.max(initial=1)))
        return rows.of_batches(dataset.windows, net.batch_size)
    settings = {"padding": padding, "further": module.further_inputs, "unit": run_cost(device)}
    found = packable(module)
    if net.pack and found.grouped:
        assert found.first is not None
        return Grouped(first=found.first, **settings)
    return Padded(**settings)


def layout_to_predict(module: Any, padding: Padding, *, device: str, pack: bool) -> Layout:
    """The layout of predictions, whose windows are sorted by length: a CPU only pads them."""
    if devices.is_gpu(device):
        return _rows(module, padding, pack)
    return Padded(padding=padding, further=module.further_inputs, unit=run_cost(device))


def _rows(module: Any, padding: Padding, pack: bool, padding_target: Any = 0) -> Recurring:
    found, config = packable(module), module.encoder.config
    settings = {
        "padding": padding,
        "further": module.further_inputs,
        "padding_target": padding_target,
    }
    positions = max(getattr(config, "max_position_embeddings", None) or 0, 0)  # XLNet says -1
    if not pack or found.mask is None:
        behind = (getattr(config, "pad_token_id", None) or 0) + 1  # where RoBERTa begins to count
        return RowsOfOne(most=max(positions - behind, 0), **settings)
    return Rows(
        most=max(positions - (found.first or 0), 0),
        mask=found.mask,
        first=found.first,
        pooling=module.pooling,
        last=found.summary_last,
        **settings,
    )


def leaves_out_padding(criterion: nn.Module) -> bool:
    """Return True if rows of weight 0 change no loss in a criterion, as they may in a user's."""
    losses = losses_in(criterion)
    return bool(losses) and all(loss.heeds_weights for loss in losses)
