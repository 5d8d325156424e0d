"""What the frozen lower layers of an encoder say of each input, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skdice.backbones import encoder_layers
from skdice.engine.batching import EncodedDataset, LengthBatches
from skdice.engine.module import EncoderWithHead
from skdice.engine.tables import empty_table
from skdice.text.encoding import Window

__all__ = ["LowerLayers"]


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
        for layer in encoder_layers(module.encoder)[: self.n_layers]:
            layer.forward = self._say
        module.encoder.register_forward_pre_hook(self._before, with_kwargs=True)

    def changes(self, inputs: dict[str, Tensor]) -> str | None:
        """Why what the lower layers say cannot be kept while the others are trained, if so."""
        module = self.module
        found = []
        for _ in range(2):
            module.train()  # what is frozen stays in evaluation mode
            with torch.enable_grad():
                module.encoder(**inputs)
            found.append(self._output)
        module.eval()
        one, other = (_states(output) for output in found)
        why = None
        if one.requires_grad:
            why = "use weights that are not frozen"
        elif not torch.equal(one, other):
            why = "have dropout that is not frozen"
        elif one.shape[:2] != inputs["input_ids"].shape:
            why = "have states that are not by input and subword"
        elif isinstance(found[0], tuple) and any(part is not None for part in found[0][1:]):
            why = "hand on more than hidden states"
        return why and f"the lower layers of {type(module.encoder).__name__} {why}"

    def remember(self, dataset: EncodedDataset, net: Any) -> None:
        """Compute the output for all windows; past 1 GiB it lies in a temporary file."""
        distinct = {_key(w.input_ids, w.token_type_ids): w for w in dataset.windows}
        windows = list(distinct.values())
        self._table = empty_table(sum(map(len, windows)), self._table.shape[1])
        end = 0
        lengths = EncodedDataset(windows).lengths
        for batch in LengthBatches(lengths, 64):
            chosen: Sequence[Window] = [windows[i] for i in batch]
            inputs, _, _ = net.padder([(window, None, None) for window in chosen])
            inputs.pop("positions", None)
            inputs = {name: values.to(net.device) for name, values in inputs.items()}
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


def _states(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _key(ids: Sequence[int], kinds: Sequence[int] | None) -> bytes:
    return np.array([*ids, -1, *(kinds or ())], dtype=np.int64).tobytes()
