"""Batches on a GPU: sentences in rows of one length, so that shapes recur.

A GPU computes a batch faster than it is told what to compute. Where the shapes of batches recur it
is told once, see `graphs`; and its attention need not plan anew. So sentences are packed into rows
of few lengths, in few numbers of rows, and a block mask lets each see only itself. What is padded
has a weight of 0 in the loss.
"""

from __future__ import annotations

import inspect
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch

from skdice.engine.attention import settle_attention
from skdice.engine.batching import ahead, by_window
from skdice.engine.devices import to_device
from skdice.losses import HeadsLoss, Loss, SpanEndsLoss
from skdice.text.encoding import Window

LENGTHS = (64, 128, 256, 512)  # of rows; longer ones are multiples of the last
TOKENS = 8192  # of a batch in prediction
# How encoders take a mask (n_rows, length, length): with a dimension for heads, also as numbers to
# add to scores, as it is, or as XLNet, which is told what not to see. Layers that see a window only
# get a mask of their own.
STYLES = ("heads", "added", "causal", "plain", "perm_mask")


def few(n: int) -> int:
    """`n` rounded up by at most a quarter, to one of few numbers.

    Examples
    --------
    >>> from skdice.engine.rows import few
    >>> [few(n) for n in (1, 5, 9, 17, 33, 100)]
    [1, 5, 10, 20, 40, 112]
    """
    step = max(1, 1 << n.bit_length() >> 3)
    return -(-n // step) * step


def pack(lengths: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of each sentence, and its place there; the longest first, where they fit best.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.engine.rows import pack
    >>> [part.tolist() for part in pack(np.array([3, 6, 2, 7]), size=10)]
    [[0, 1, 1, 0], [7, 0, 6, 0]]
    """
    rows, starts = np.zeros((2, len(lengths)), dtype=np.int64)
    free: list[tuple[int, int]] = []  # what is left of each row
    for i in np.argsort(-lengths, kind="stable").tolist():
        place = bisect_left(free, (int(lengths[i]), -1))
        left, row = free.pop(place) if place < len(free) else (size, len(free))
        rows[i], starts[i] = row, size - left
        insort(free, (left - int(lengths[i]), row))
    return rows, starts


@dataclass(frozen=True)
class Rows:
    """A layout of sentences for an encoder.

    Parameters
    ----------
    length : int
        Subwords of a row.
    style : str or None
        One of `STYLES` or ``"layers"``; None puts each sentence into a row of its own, with the
        usual mask.
    first : int or None
        The position id of a sentence's first subword; None where the encoder is given none.
    pooling : str or None
        As in `EncoderWithHead`.
    cls_last : bool
        Whether a text's summary token is its last.
    padding : int or tuple of int, default=0
        The target of what is padded.
    n_rows, n_windows : int, default=0
        What a batch has at least, so that the last one of an epoch has the shape of the others.
    """

    length: int
    style: str | None
    first: int | None
    pooling: str | None = None
    cls_last: bool = False
    padding: Any = 0
    n_rows: int = 0
    n_windows: int = 0

    def of_batches(self, lengths: np.ndarray, batch_size: int) -> Rows:
        """The layout in which nearly all batches of windows of these lengths have one shape.

        Readers and `DiceMRCTagger` predict at other numbers of places, so their last batch differs.
        """
        n_windows = min(batch_size, len(lengths))
        filled = n_windows * lengths.mean() / self.length if len(lengths) else 0
        n_rows = n_windows if self.style is None else few(math.ceil(1.05 * filled))
        return replace(self, n_rows=n_rows, n_windows=n_windows)

    def __call__(self, windows: Sequence[Window], padder: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of the module, and where each window starts among the subwords of all rows."""
        if self.style is None:
            n_rows = few(max(len(windows), self.n_rows))
            inputs, starts = padder.padded(windows, (n_rows, self.length))
        else:
            inputs, starts = self._packed(windows, padder)
        if any(len(window.positions) for window in windows):  # which the padder writes here
            inputs["positions"] = torch.zeros(inputs["input_ids"].numel(), dtype=torch.int64)
        elif self.style is not None:
            inputs |= self._texts(starts, np.array([len(window) for window in windows]))
        return inputs, starts

    def _packed(self, windows: Sequence[Window], padder: Any) -> tuple[dict[str, Any], np.ndarray]:
        lengths = np.array([len(window) for window in windows])
        rows, places = pack(lengths, self.length)
        n_rows = few(max(int(rows.max()) + 1, self.n_rows))
        starts = rows * self.length + places
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        where = np.repeat(starts, lengths) + inside

        def table(values: np.ndarray, padding: int) -> torch.Tensor:
            flat = np.full(n_rows * self.length, padding, dtype=np.int64)
            flat[where] = values
            return torch.from_numpy(flat).view(n_rows, self.length)

        inputs = {
            "input_ids": table(np.concatenate([w.input_ids for w in windows]), padder.pad_id),
            "sentences": table(np.repeat(np.arange(len(windows)) + 1, lengths), 0),
        }
        if self.first is not None:
            inputs["position_ids"] = table(inside + self.first, self.first)
        if windows[0].token_type_ids is not None:
            segments = np.concatenate([np.asarray(w.token_type_ids) for w in windows])
            inputs["token_type_ids"] = table(segments, padder.pad_segment)
        return inputs, starts

    def _texts(self, starts: np.ndarray, lengths: np.ndarray) -> dict[str, torch.Tensor]:
        """The subwords that stand for each text: one, or all of them with a mask."""
        size = few(max(len(starts), self.n_windows))
        if self.pooling not in ("mean", "max"):
            texts = torch.from_numpy(starts + (lengths - 1) * self.cls_last)
            return {"texts": grown(texts, size)}
        inside = np.arange(self.length) < np.pad(lengths, (0, size - len(lengths)))[:, None]
        places = np.where(inside[: len(starts)], starts[:, None] + np.arange(self.length), 0)
        inside[len(starts) :, 0] = True  # for the mean of nothing is no number
        return {"texts": grown(torch.from_numpy(places), size), "inside": torch.from_numpy(inside)}

    def batch(self, padder: Any, dataset: Any, rows: np.ndarray) -> tuple[Any, Any, Any]:
        """Some windows of a data set as one micro-batch, padded to shapes that recur."""
        inputs, target, weight = padder([dataset[int(i)] for i in rows], self)
        for name in {"pairs", "order"} & inputs.keys():
            inputs[name] = grown(inputs[name], few(len(inputs[name])))
        names = ("order", "positions", "texts", "input_ids")
        size = next(len(inputs[name]) for name in names if name in inputs)
        if target is not None:
            weight = torch.ones(len(target)) if weight is None else weight
            return [inputs], grown(target, size, self.padding), grown(weight, size)
        return [inputs], None, None


def grown(values: torch.Tensor, size: int, padding: Any = 0) -> torch.Tensor:
    """Values with rows of padding behind them."""
    new = values.new_empty(size, *values.shape[1:])
    new[: len(values)] = values
    new[len(values) :] = torch.as_tensor(padding, dtype=values.dtype)
    return new


def with_mask(module: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs of the module with the mask of its style in place of the sentences' numbers."""
    if "sentences" not in inputs:
        return inputs
    sentences, (style, _) = inputs["sentences"], module.row_style
    inputs = {name: values for name, values in inputs.items() if name != "sentences"}
    seen: Any = sentences[:, :, None] == sentences[:, None, :]
    if style == "perm_mask":
        return inputs | {style: (~seen).float()}
    if style == "layers":
        place = torch.arange(seen.shape[-1], device=seen.device)
        near = (place[:, None] - place).abs() <= module.encoder.config.sliding_window
        seen = {"full_attention": seen[:, None], "sliding_attention": (seen & near)[:, None]}
    elif style != "plain":
        seen = (seen.tril() if style == "causal" else seen)[:, None]
    if style == "added":
        seen = torch.zeros_like(seen, dtype=torch.float32).masked_fill(
            ~seen, torch.finfo(torch.float32).min
        )
    return inputs | {"attention_mask": seen}


def row_layout(module: Any, longest: int, *, pack: bool = True, padding: Any = 0) -> Rows:
    """Return the layout of windows of up to `longest` subwords in the module's style."""
    style, first = module.row_style if pack else (None, None)
    config, last = module.encoder.config, LENGTHS[-1]
    length = next((n for n in LENGTHS if n >= longest), -(-longest // last) * last)
    most = most_positions(config) or length
    if style is None:
        first_of_padded = (getattr(config, "pad_token_id", None) or 0) + 1  # in RoBERTa
        length = max(longest, min(length, most - first_of_padded))
    else:
        length = max(longest, min(length, most - (first or 0)))
    cls_last = config.model_type == "xlnet"
    return Rows(length, style, first, module.pooling, cls_last, padding)


def leaves_out_padding(criterion: Any) -> bool:
    """Return True if rows of weight 0 change no loss in a criterion, as they may in a user's."""
    losses = [part for part in criterion.modules() if isinstance(part, Loss)]
    ours = isinstance(criterion, (Loss, SpanEndsLoss, HeadsLoss))
    return ours and all(loss.heeds_weights for loss in losses)


def most_positions(config: Any) -> int:
    """The positions that an encoder knows; 0 where there is no such number."""
    return max(getattr(config, "max_position_embeddings", None) or 0, 0)  # XLNet says -1


@torch.no_grad()
def find_style(
    module: Any, padder: Any, windows: Any, device: str
) -> tuple[str | None, int | None]:
    """Style and first position id with which some windows get the logits that they get padded.

    An error, or a difference that is not small beside what the mask changes, rules a style out.
    """
    settle_attention(module, device)
    config, order = module.encoder.config, np.argsort(windows.lengths, kind="stable")
    some = [(windows[int(i)], None, None) for i in {*order[:5].tolist(), int(order[-1])}]
    longest = max(len(window) for window, _, _ in some)
    expected = _logits(module, padder(some)[0], device)
    takes = "position_ids" in inspect.signature(module.encoder.forward).parameters
    after_padding = (getattr(config, "pad_token_id", None) or 0) + 1
    firsts = (0, after_padding) if takes else (None,)
    styles = ("layers",) if getattr(config, "sliding_window", None) else STYLES
    known = module.row_style
    for first, style in product(firsts, styles):
        if (first or 0) + longest > (most_positions(config) or np.inf):
            continue
        module.row_style = style, first
        rows = row_layout(module, longest)
        try:
            ((inputs,), _, _) = rows.batch(padder, some, np.arange(len(some)))
            found = _logits(module, inputs, device)[: len(expected)]
            inputs["sentences"] = torch.ones_like(inputs["sentences"])
            unmasked = _logits(module, inputs, device)[: len(expected)]
        except (RuntimeError, TypeError, ValueError, AttributeError, LookupError):
            continue
        finally:
            module.row_style = known
        if found.shape != expected.shape:
            continue
        error, gap = ((each - expected).abs().max() for each in (found, unmasked))
        if error <= 0.02 * gap + 1e-5 * expected.abs().max():
            return style, first
    return None, None


def _logits(module: Any, inputs: dict[str, Any], device: str) -> torch.Tensor:
    moved = {name: to_device(values, device) for name, values in inputs.items()}
    return module(**with_mask(module, moved)).float()


def for_each_window_in_rows(
    module: Any,
    padder: Any,
    windows: Any,
    compute: Callable[[dict[str, Any]], torch.Tensor],
    *,
    pack: bool = True,
) -> list[np.ndarray]:
    """Return `compute` of each window, from inputs of about `TOKENS` subwords in `Rows`.

    Each batch is made while the GPU computes the one before it.
    """
    if not len(windows):
        return []
    outputs, chosen = [], []
    for part, inputs in ahead(_batches_to_predict(module, padder, windows, pack)):
        n = sum(windows[int(i)].n_predictions for i in part) or len(part)
        outputs.append(compute(inputs)[:n])
        chosen.append(part)
    together = torch.cat(outputs).cpu().numpy()
    ends = np.cumsum([len(output) for output in outputs])
    return by_window(windows, chosen, np.split(together, ends[:-1]))


def _batches_to_predict(
    module: Any, padder: Any, windows: Any, pack_rows: bool
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    lengths = windows.lengths
    borders = np.searchsorted(LENGTHS, lengths)
    for border in np.unique(borders):
        chosen = np.flatnonzero(borders == border)
        rows = row_layout(module, int(lengths[chosen].max()), pack=pack_rows)
        places = (
            np.arange(len(chosen)) if rows.style is None else pack(lengths[chosen], rows.length)[0]
        )
        run = places // max(1, TOKENS // rows.length)
        for i in range(int(run.max()) + 1):
            part = chosen[run == i]
            some = {int(i): (windows[int(i)], None, None) for i in part}
            yield part, rows.batch(padder, some, part)[0][0]
