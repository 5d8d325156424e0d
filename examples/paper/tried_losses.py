"""Variants beyond the settings of the losses: temperature, span counts and annealed weights."""

from __future__ import annotations

from typing import Any

import torch
from experiments import ANNEALED
from torch import Tensor

from skdice.losses import Loss, resolve_loss

__all__ = ["Annealed", "SpanLoss", "Tempered", "Watched", "tried_loss"]


class Tempered(Loss):
    """A loss of the logits over a temperature, times the temperature.

    Below 1 soft counts come nearer to those of decisions, and examples that are right by little
    stop pulling; above 1 they go on. The product keeps the slope at p = 1/2 as it was.

    Parameters
    ----------
    loss : str
    temperature : float
    """

    def __init__(self, loss: Any = "dice", temperature: float = 1.0) -> None:
        super().__init__()
        self.loss, self.temperature = resolve_loss(loss), temperature

    is_set_level = True

    @property
    def parts(self) -> dict[str, Loss]:
        """The loss of the cooled logits."""
        return {"loss": self.loss}

    def kernel(self, problem: Any, *, loss: Any, temperature: Any) -> Tensor:
        """The loss of one batch."""
        return temperature * loss(problem.with_logits(problem.logits / temperature))


class SpanLoss(Loss):
    """`dice` by default, with the F1 of its weights counted over spans, for BIO tags.

    A token of an entity pulls by 2 - F and one of the background by F, over the number of tokens,
    as in `dice`. There F is the soft F1 of tokens; here that of spans: a hit is the product of the
    probabilities of a span's tokens, and spans are called as often as the tags that begin one are.

    Parameters
    ----------
    counts : {"spans", "tokens"}
        What F counts.
    each_once : bool
        A span of n tokens pulls as one of one token does, and not n times.
    smooth : float
    """

    def __init__(
        self, counts: str = "spans", each_once: bool = False, smooth: float = 0.01
    ) -> None:
        super().__init__()
        self.counts, self.each_once, self.smooth = counts, each_once, smooth

    is_set_level = True
    has_functional_form = False  # its shapes depend on the batch

    def kernel(self, problem: Any, **values: Any) -> Tensor:
        """The loss of one batch."""
        # Sorted tags: every type's B-, every type's I-, O. Rows of a batch follow each other, and
        # a span begins with B-, so that none goes on over the end of a sentence.
        n_types = self.background_ // 2
        counted = problem.weight[:, 0] > 0
        log_p, y = problem.log_p()[counted], problem.target[counted].argmax(-1)
        inside, begins = y != self.background_, y < n_types
        right = log_p.gather(1, y[:, None])[:, 0]
        span = (begins.cumsum(0) - 1).clamp(min=0)[inside]
        n_spans = max(int(begins.sum()), 1)
        p = log_p.detach().exp()
        if self.counts == "spans":
            logs = torch.zeros(n_spans, device=p.device).index_add(0, span, right.detach()[inside])
            hits = logs.exp().sum() * (begins.sum() > 0)
            called, there = p[:, :n_types].sum(), begins.sum()
        else:
            hits = right.detach()[inside].exp().sum()
            called, there = (1 - p[:, self.background_]).sum(), inside.sum()
        f1 = (2 * hits + self.smooth) / (called + there + self.smooth)
        weight = torch.where(inside, 2 - f1, f1)
        if self.each_once:
            sizes = torch.zeros(n_spans, device=p.device).index_add(
                0, span, torch.ones_like(right[inside])
            )
            weight[inside] = weight[inside] / sizes[span]
        return -(weight * right).sum() / max(len(y), 1)


class Annealed(Loss):
    """Cross-entropy with the weights of `ce_dice`, where the F1 in them is a straight line.

    `ce_dice` weighs a positive by 2 - F and a negative by F, for its share of 0.9, with F the soft
    F1 of the batch. Here F rises from 0 to 1 over the updates, whatever the model does.

    Parameters
    ----------
    steps : int
        Updates in all.
    share : float
        Of the weights; the rest is plain cross-entropy.
    """

    def __init__(self, steps: int = 100, share: float = 0.9) -> None:
        super().__init__()
        self.steps, self.share = steps, share
        self.step = 0

    has_functional_form = False  # it counts its calls

    def kernel(self, problem: Any, **values: Any) -> Tensor:
        """The loss of one batch."""
        f1 = min(self.step / self.steps, 1.0)
        self.step += torch.is_grad_enabled()
        counted = problem.weight[:, 0] > 0
        log_p, y = problem.log_p()[counted], problem.target[counted].argmax(-1)
        right = log_p.gather(1, y[:, None])[:, 0]
        negative = y == self.background_
        weight = 1 - self.share + self.share * torch.where(negative, f1, 2 - f1)
        return -(weight * right).mean()


class Watched(Loss):
    """A loss that notes what the model finds in each batch before it learns from it.

    Parameters
    ----------
    loss : Loss

    Attributes
    ----------
    seen : list of (hits, found, there)
        Positives of each training batch.
    """

    def __init__(self, loss: Any = "ce") -> None:
        super().__init__()
        self.loss = resolve_loss(loss)
        self.seen: list[tuple[int, int, int]] = []

    is_set_level = True
    has_functional_form = False

    @property
    def parts(self) -> dict[str, Loss]:
        """The loss that trains."""
        return {"loss": self.loss}

    def kernel(self, problem: Any, *, loss: Any) -> Tensor:
        """The loss of one batch."""
        if torch.is_grad_enabled():
            counted = problem.weight[:, 0] > 0
            found, there = (
                values[counted].argmax(-1) for values in (problem.log_p(), problem.target)
            )
            positive = there != self.background_
            hits = int((positive & (found == there)).sum())
            self.seen.append((hits, int((found != self.background_).sum()), int(positive.sum())))
        return loss(problem)


def tried_loss(name: str, steps: int = 100) -> Loss:
    """One of `experiments.TRIED`; `steps` is how many updates the fit has."""
    if name == ANNEALED:
        return Annealed(steps)
    if name.startswith("dsc, temperature "):
        return Tempered("dsc", float(name.split()[-1]))
    return SpanLoss(each_once=name.endswith("each once"))
