"""What the frozen lower layers of an encoder say of each input, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skdice.backbones import encoder_layers
from skdice.engine.arrays import empty_table
from skdice.engine.batching import EncodedDataset, LengthBatches
from skdice.engine.module import EncoderWithHead
from skdice.text.encoding import Window

__all__ = ["LowerLayers", "encoder_inputs"]


class LowerLayers:
    """The lowest layers of an encoder, which say to copies of it what they remember.

    Parameters
    ----------
    module : EncoderWithHead
        With the embeddings and the lowest layers frozen; it keeps these and loses the others.
    n_layers : int
        How many stay.
    """

    def __init__(self, module: EncoderWithHead, n_layers: int) -> None:
        self.module = module
        layers = encoder_layers(module.encoder)
        del layers[n_layers:]
        layers[-1].register_forward_hook(self._after)
        self.n_layers = n_layers
        self._known: dict[bytes, slice] = {}
        self._table = np.empty((0, module.encoder.config.hidden_size), dtype=np.float32)
        self._output: Any = None  # of the lower layers, run last
        self._next: Any = None  # what they would say of the inputs at hand

    def __deepcopy__(self, memo: Any) -> LowerLayers:
        return self

    def put_into(self, module: EncoderWithHead) -> None:
        """Speak for the lowest layers of another module with the same weights there."""
        own = dict(self.module.named_parameters())
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                parameter.data = own[name].data  # which are held once
        for layer in encoder_layers(module.encoder)[: self.n_layers]:
            layer.forward = self._say
        module.encoder.register_forward_pre_hook(self._before, with_kwargs=True)

    def changes(self, inputs: dict[str, Tensor]) -> str | None:
        """Why what the lower layers say cannot be kept while the others are trained, if so.

        Parameters
        ----------
        inputs : dict
            Of two windows, of which one is longer if there are such.
        """
        module = self.module
        found = []
        for _ in range(2):
            module.train()  # what is frozen stays in evaluation mode
            with torch.enable_grad():
                module.encoder(**inputs)
            found.append(self._output)
        one, other = (_states(output) for output in found)
        if one.requires_grad:
            return "weights below are not frozen"
        if not torch.equal(one, other):
            return "dropout below is not frozen"
        if one.shape[:2] != inputs["input_ids"].shape:
            return "states below are not by input and subword"
        if isinstance(found[0], tuple) and any(part is not None for part in found[0][1:]):
            return "layers below hand on more than hidden states"
        for i, inside in enumerate(inputs["attention_mask"].bool()):
            alone = self._run({name: v[i : i + 1, inside] for name, v in inputs.items()})[0]
            if not torch.allclose(alone, one[i, inside], rtol=1e-3, atol=1e-3):
                return "states below depend on what else is in a batch"
        return None

    def remember(self, dataset: EncodedDataset, net: Any) -> None:
        """Compute the output for all windows; past 1 GiB it lies in a temporary file."""
        distinct = {_key(w.input_ids, w.token_type_ids): w for w in dataset.windows}
        windows = list(distinct.values())
        self._table = empty_table(sum(map(len, windows)), self._table.shape[1])
        end = 0
        lengths = EncodedDataset(windows).lengths
        for batch in LengthBatches(lengths, 64):
            chosen: Sequence[Window] = [windows[i] for i in batch]
            inputs = encoder_inputs(net, chosen)
            with net._autocast():
                states = self._run(inputs)
            rows = states[inputs["attention_mask"].bool()].cpu().numpy()
            for window in chosen:
                place = slice(end, end + len(window))
                self._known[_key(window.input_ids, window.token_type_ids)] = place
                end = place.stop
            self._table[end - len(rows) : end] = rows

    def _say(self, *args: Any, **kwargs: Any) -> Any:
        return self._next

    def _before(self, encoder: Any, args: Any, inputs: dict[str, Any]) -> None:
        states = self._look_up(inputs)
        # Layers return states, or states and places for more.
        more = self._output[1:] if isinstance(self._output, tuple) else None
        self._next = states if more is None else (states, *more)

    def _after(self, layer: Any, args: Any, output: Any) -> None:
        self._output = output

    def _look_up(self, inputs: dict[str, Any]) -> Tensor:
        """Hidden states of shape (N, L, H), 0 where the inputs are padded."""
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        segments = inputs.get("token_type_ids")
        kept = mask.bool().cpu().numpy()
        table = ids.cpu().numpy()
        kinds = None if segments is None else segments.cpu().numpy()
        places = []
        for i, inside in enumerate(kept):
            of_row = None if kinds is None else kinds[i, inside].tolist()
            place = self._known.get(_key(table[i, inside].tolist(), of_row))
            if place is None:  # rows that nobody spoke of before
                return self._run(inputs)
            places.append(np.arange(place.start, place.stop))
        rows = torch.from_numpy(self._table[np.concatenate(places)]).to(ids.device)
        states = rows.new_zeros(*ids.shape, rows.shape[1])
        states[mask.bool()] = rows
        return states

    @torch.no_grad()
    def _run(self, inputs: dict[str, Tensor]) -> Tensor:
        """Hidden states of shape (N, L, H), float32."""
        module = self.module.eval()
        module.encoder(**inputs)
        return _states(self._output).float()


def encoder_inputs(net: Any, windows: Sequence[Window]) -> dict[str, Tensor]:
    """What the encoder of a net takes, on its device."""
    inputs, _, _ = net.padder([(window, None, None) for window in windows])
    inputs.pop("positions", None)
    return {name: values.to(net.device) for name, values in inputs.items()}


def _states(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _key(ids: Sequence[int], kinds: Sequence[int] | None) -> bytes:
    return np.array([*ids, -1, *(kinds or ())], dtype=np.int64).tobytes()
