"""Parts of a recipe that are tried one at a time, on top of what `fit` chooses.

`recipe.py run --rows ingredients` trains each with as many updates as the default makes, and
`recipe.py show` prints what each is worth.
"""

from __future__ import annotations

from typing import Any

import torch
from skorch.callbacks import Callback

TAGS = ("wnut17", "bc5cdr", "ud_en")
# By name: the parameters, and whether they are for tags, for texts, or for both (None).
INGREDIENTS: dict[str, tuple[dict[str, Any], bool | None]] = {
    "rates fall by 0.9 a layer": ({"layer_decay": 0.9}, None),
    "rates fall by 0.95 a layer": ({"layer_decay": 0.95}, None),
    "mean of the last third's weights": ({"average": 1 / 3}, None),
    "batch of 16": ({"batch_size": 16}, None),
    "no dropout before the head": ({"dropout": 0.0}, None),
    "warm-up 0.2": ({"warmup": 0.2}, None),
    "constrained": ({"constrained": True}, True),
    "all subwords labelled": ({"label_all_subwords": True}, True),
    'pooling="native"': ({"pooling": "native"}, False),
}
OWN = ("layer_decay", "average")  # which are no parameters of an estimator


def apply_to(model: Any, job: dict[str, Any]) -> list[Any]:
    """Set what is no parameter of an estimator; returns the callbacks it takes."""
    if "layer_decay" in job:
        rates = [job["lr"] * job["layer_decay"] ** (6 - i) for i in range(6)]  # of MiniLM's layers
        groups = [(f"encoder.encoder.layer.{i}.*", {"lr": rate}) for i, rate in enumerate(rates)]
        groups.append(("encoder.embeddings.*", {"lr": rates[0] * job["layer_decay"]}))
        model.set_params(net_params={"optimizer__param_groups": groups})
    return [WeightAverage(job["average"])] if "average" in job else []


class WeightAverage(Callback):
    """The mean of the weights over the last part of the epochs, after each update.

    Parameters
    ----------
    share : float
        Of the epochs.
    """

    def __init__(self, share: float) -> None:
        self.share = share

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        self.sums_: list[torch.Tensor] = []
        self.n_ = 0

    @torch.no_grad()
    def on_batch_end(self, net: Any, batch: Any = None, training: bool = False, **kw: Any) -> None:
        if not training or len(net.history) <= net.max_epochs * (1 - self.share):
            return
        values = [p.double() for p in net.module_.parameters()]
        pairs = zip(self.sums_, values, strict=True) if self.sums_ else ()
        self.sums_ = [a + b for a, b in pairs] or values
        self.n_ += 1

    @torch.no_grad()
    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        for parameter, total in zip(net.module_.parameters(), self.sums_, strict=True):
            parameter.copy_(total / self.n_)
