"""Criteria of question answering: several binary problems over the tokens of a batch in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from skdice.losses.base import Loss
from skdice.losses.compound import CompoundLoss
from skdice.losses.inputs import n_ranks, over_ranks


class SpanEndsLoss(nn.Module):
    """The mean of two losses: of where an answer starts and of where it ends.

    A token's probability of being the start is a softmax over the positions of its window, as BERT
    reads SQuAD (Devlin et al., 2019, section 4.2). `CrossEntropyLoss` is the cross-entropy of this
    softmax. For every other loss, each position against the others of its window is one example of
    a binary problem over all tokens of the batch. A `CompoundLoss` is the mean of its parts, each
    computed in this way.

    Parameters
    ----------
    loss : Loss
        Prepared with the number of tokens that are not a border, and of those that are.

    Notes
    -----
    The target has shape (n, 3): 0/1 for start and end, and 1 at the first position of a window.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> from skdice.losses.span_ends import SpanEndsLoss
    >>> loss = SpanEndsLoss(CrossEntropyLoss())
    >>> logits = torch.zeros(4, 2)  # one window of four tokens: its start and its end
    >>> target = torch.tensor([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]])
    >>> print(f"{loss(logits, target):.3f}")  # log 4
    1.386
    """

    # Of positions that do not count: each is a window of its own.
    padding_target: tuple[int, int, int] = (0, 0, 1)

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss
        if isinstance(loss, CompoundLoss):
            self.parts: nn.ModuleList = nn.ModuleList(
                SpanEndsLoss(part) for part in loss.parts.values()
            )
            return
        self.is_multiclass: bool = loss.normalizes_over_positions
        for name, remedy in (("tau", "leave tau at 0"), ("class_weight", "use 'weighted_ce'")):
            value: Any = getattr(loss, name, None)
            if self.is_multiclass and value is not None and (name != "tau" or value):
                raise ValueError(
                    f"loss=CrossEntropyLoss({name}={value!r}) has no classes to weight here, where "
                    f"it is a softmax over positions: {remedy}"
                )

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """The loss of logits of shape (n, 2)."""
        if isinstance(self.loss, CompoundLoss):
            return self.loss.mean_of(*(part(logits, target, sample_weight) for part in self.parts))
        sides, first = target[:, :2].to(torch.float32), target[:, 2].to(torch.float32)
        window = first.long().cumsum(0) - 1
        z = logits.float()
        index = window.unsqueeze(-1).expand_as(z)
        # Tables have a row for each position, though there are fewer windows: reading the number
        # of windows from a GPU would make the step wait.
        top = torch.full_like(z, -torch.inf).scatter_reduce(0, index, z.detach(), "amax")
        total = sums_of_windows(torch.exp(z - top[window]), window)
        log_p = z - top[window] - torch.log(total)[window]
        if not self.is_multiclass:
            rest = (-torch.expm1(log_p)).clamp(min=torch.finfo(log_p.dtype).eps)
            log_odds = log_p - torch.log(rest)
            start = self.loss(log_odds[:, 0], sides[:, 0], sample_weight=sample_weight)
            end = self.loss(log_odds[:, 1], sides[:, 1], sample_weight=sample_weight)
            return torch.stack([start, end]).mean()
        smoothing = float(getattr(self.loss, "label_smoothing", 0.0))
        size = sums_of_windows(torch.ones_like(first), window)
        share = (1 - smoothing) * sides + smoothing / size[window].unsqueeze(-1)
        losses = (-share * log_p).mean(dim=1)
        weight = first if sample_weight is None else first * sample_weight.to(first.dtype)
        of_window = sums_of_windows(weight, window)[window]
        ranks = n_ranks(self.loss.all_ranks)
        total = over_ranks(weight.sum(), ranks).clamp(min=torch.finfo(weight.dtype).tiny)
        return (losses * of_window).sum() * ranks / total


def sums_of_windows(values: Tensor, window: Tensor) -> Tensor:
    """Sums of values over the rows with the same window, in a table of as many rows."""
    zeros = torch.zeros_like(values)
    if values.device.type == "cpu":
        return zeros.index_add(0, window, values)
    # A GPU adds by `index_add` in a changing order, so that a seed would not give the same weights.
    return zeros.index_put((window,), values, accumulate=True)


class HeadsLoss(nn.Module):
    """Several binary problems, one for each head, whose logits are in one vector.

    Parameters
    ----------
    losses : list of Loss
        One for each head, prepared.
    weights : list of float
        Their shares in the sum.

    Notes
    -----
    The target has shape (n, 2): 0/1, and the index of the element's head.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> from skdice.losses.span_ends import HeadsLoss
    >>> loss = HeadsLoss([CrossEntropyLoss(), CrossEntropyLoss()], [0.75, 0.25])
    >>> target = torch.tensor([[1, 0], [0, 0], [0, 1]])  # the third element is of the second head
    >>> print(f"{loss(torch.zeros(3), target):.3f}")  # log 2
    0.693
    """

    def __init__(self, losses: Sequence[Loss], weights: Sequence[float]) -> None:
        super().__init__()
        self.losses: nn.ModuleList = nn.ModuleList(losses)
        self.weights = weights

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """The weighted sum of the heads' losses, for logits of shape (n,)."""
        total = logits.new_zeros((), dtype=torch.float32)
        for head, (loss, share) in enumerate(zip(self.losses, self.weights, strict=True)):
            if not share:
                continue
            # Masked and not selected: a selection's size would have to be read from the GPU.
            weight = (target[:, 1] == head).to(total.dtype)
            if sample_weight is not None:
                weight = weight * sample_weight
            total = total + share * loss(logits, target[:, 0], sample_weight=weight)
        return total
