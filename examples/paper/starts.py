"""Where a head's bias begins: at zero, or at the logarithm of the classes' shares.

The second start is that of the focal loss paper (Lin et al. 2017, section 4.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback

STARTS = ("zero", "log_prior")


class Start(Callback):
    """Set the bias of the layer that makes the logits before the first update.

    Parameters
    ----------
    start : {"zero", "log_prior"}
    """

    def __init__(self, start: str) -> None:
        self.start = start

    @torch.no_grad()
    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        bias = net.module_.output_layer.bias
        bias.zero_()
        if self.start == "log_prior":
            of_texts = isinstance(X.targets, np.ndarray)
            targets, weights = (X.targets, X.shares) if of_texts else X.flat_targets()
            counts = np.bincount(targets, weights, minlength=len(bias))
            shares = torch.as_tensor(counts / counts.sum())
            bias.copy_(shares.clamp(min=1e-6).log())
