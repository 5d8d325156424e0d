"""Rate and length of a fit: what is chosen where the user gives none, and the schedule.

Rates of full fine-tuning, by the width of the encoder:

- 384 (MiniLM), by a grid (``examples/paper/recipe.py``): 3e-4 for tags, 1e-4 for texts and pairs
  of two classes. Those of many classes, of which no class has many rows, need the higher rate.
- up to 512: the BERT miniatures (Turc et al. 2019) were tuned among 3e-4 to 3e-5, and ELECTRA-Small
  (Clark et al. 2020, Table 8) is trained at 3e-4. Not measured here.
- 768 and 1,024, by their authors, not measured here: BERT (Devlin et al. 2019, A.3) among
  2e-5 to 5e-5. RoBERTa (Liu et al. 2019, Table 10) among 1e-5 to 3e-5. ELECTRA (Clark et al. 2020)
  1e-4, and 5e-5 if large. XLNet (scripts of zihangdai/xlnet) 2e-5, and 2e-5 to 3e-5 if large.
  DeBERTa (scripts of microsoft/DeBERTa) 2e-5 to 3e-5, 7e-6 to 1e-5 if large; version 3 1.5e-5, and
  7e-6 if large. ModernBERT (its notebook on GLUE) 8e-5; for the large one we found none.

An adapter learns best at about ten times the rate: LoRA (Hu et al. 2022, Table 9) trains
RoBERTa-base at 5e-4 and RoBERTa-large at 2e-4 to 4e-4. That few rows need many epochs was found by
Mosbach et al. 2021 and Zhang et al. 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from skdice._checks import shown
from skdice._types import Config, Model
from skdice.backbones import load_config
from skdice.engine import ranks

SCHEDULES = ("constant", "linear", "cosine")
# Width up to which it holds: rate of full fine-tuning, the same for texts of two classes, and
# rate with an adapter.
RATES: dict[float, tuple[float, float, float]] = {
    512: (3e-4, 1e-4, 1e-3),
    768: (5e-5, 5e-5, 5e-4),
    float("inf"): (2e-5, 2e-5, 3e-4),
}
# Of full fine-tuning at 768 and above, where the authors of an architecture use another.
RATES_OF_KINDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), (3e-5, 2e-5)),
    "deberta": (2e-5, 1e-5),
    "deberta-v2": (2e-5, 7e-6),  # version 3 too
    "electra": (1e-4, 5e-5),
    "modernbert": (8e-5, 2e-5),
    "xlnet": (2e-5, 2e-5),
}
RATE_OF_HEAD = 1e-2  # of a linear head on a frozen encoder
UPDATES = 500  # of a fit on few rows
MOST_UPDATES = 6000  # of a fit that makes no more than `LEAST_EPOCHS`
LEAST_EPOCHS, MOST_EPOCHS = 3, 30
# Of texts of two classes: rows of the rarer one that all epochs see together. More passes learn
# wrong labels by heart, and gain little where labels are right (`examples/paper/length.py`).
RARE_ROWS = 100
LEAST_UPDATES = 40  # at `RATE_OF_LEAST`, and more at a lower rate
RATE_OF_LEAST = 1e-4


def choose_rate(
    width: int,
    frozen: str | int | None = None,
    *,
    kind: str = "bert",
    two_classes: bool = False,
    adapted: bool = False,
    constant: bool = False,
    batch_share: float = 1.0,
) -> float:
    """The peak learning rate for an encoder of this width.

    A batch smaller than the default has a lower one, by the square root of their ratio
    (`examples/paper/small_batches.py`). A larger one has the same.

    Parameters
    ----------
    width : int
        Its hidden size.
    frozen : int, "embeddings", "encoder" or None, default=None
    kind : str, default="bert"
        The architecture: ``model_type`` of its configuration.
    two_classes : bool, default=False
        Whether each text or pair has one of two labels.
    adapted : bool, default=False
        Whether an adapter is trained in place of the encoder's weights.
    constant : bool, default=False
        Whether the rate does not fall, as in `partial_fit`: it is then lower.
    batch_share : float, default=1.0
        Rows of one update, over all processes, for each of the default's.

    Examples
    --------
    >>> from skdice.engine.recipe import choose_rate
    >>> choose_rate(384), choose_rate(768), choose_rate(768, adapted=True)
    (0.0003, 5e-05, 0.0005)
    >>> choose_rate(768, kind="xlnet"), choose_rate(384, two_classes=True)
    (2e-05, 0.0001)
    >>> choose_rate(384, batch_share=8 / 32), choose_rate(384, batch_share=128 / 32)
    (0.00015, 0.0003)
    """
    of_many, of_two, of_adapter = next(rates for most, rates in RATES.items() if width <= most)
    of_weights = of_two if two_classes else of_many
    if width > 512 and kind in RATES_OF_KINDS:
        of_weights = RATES_OF_KINDS[kind][width > 768]
    rate = RATE_OF_HEAD
    if frozen != "encoder":
        rate = of_adapter if adapted else of_weights
        rate = float(f"{rate * min(batch_share, 1) ** 0.5:.2g}")
    return float(f"{rate / 3:.1g}") if constant else rate


def choose_epochs(
    n_rows: int, rows_of_update: int, n_rare: float | None = None, rate: float = RATE_OF_LEAST
) -> int:
    """The number of epochs for so many rows.

    They make about `UPDATES` updates together. No row is seen more than `MOST_EPOCHS` times, and
    each `LEAST_EPOCHS` times unless those make more than `MOST_UPDATES` updates. With `n_rare`
    they end once `RARE_ROWS` rows of the rarer class are seen, but not before `LEAST_EPOCHS`, or
    before the updates that a fit needs at this rate.

    Parameters
    ----------
    n_rows : int
        Training rows (windows), without rows held out.
    rows_of_update : int
        Rows of one update, over all processes.
    n_rare : float or None, default=None
        Rows of the rarer of two classes.
    rate : float, default=1e-4
        The peak learning rate.

    Examples
    --------
    >>> from skdice.engine.recipe import choose_epochs
    >>> [choose_epochs(n, 32) for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000)]
    [30, 30, 16, 3, 2, 1]
    >>> [choose_epochs(n, 32, n_rare=n / 10) for n in (10, 100, 1_000, 10_000, 100_000)]
    [30, 10, 3, 3, 2]
    """
    updates = max(-(-n_rows // rows_of_update), 1)  # of an epoch
    few, many = UPDATES / updates, min(LEAST_EPOCHS, MOST_UPDATES / updates)
    if n_rare is not None:
        least = LEAST_UPDATES * max(RATE_OF_LEAST / rate, 1)
        few = min(few, max(RARE_ROWS / max(n_rare, 1), least / updates))
    return max(round(min(max(few, many), MOST_EPOCHS)), 1)


def schedule_factor(name: str, n_steps: int, warmup: float) -> Callable[[int], float]:
    """The factor of the learning rate at each update.

    Parameters
    ----------
    name : {"constant", "linear", "cosine"}
        They are those of transformers, but that the first update has the rate which transformers
        gives the second: it does not train at rate 0.
    n_steps : int
        Updates in the whole fit.
    warmup : float
        Share of the updates during which the rate rises, from 0 to 1.

    Returns
    -------
    callable
        From the index of an update (from 0) to a factor in [0, 1].

    Examples
    --------
    >>> from skdice.engine.recipe import schedule_factor
    >>> factor = schedule_factor("linear", n_steps=10, warmup=0.2)
    >>> [round(factor(step), 3) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.125]
    """
    rising = min(math.ceil(warmup * n_steps), n_steps)
    # A plain function, so that a net with its schedule can be pickled.
    return partial(_factor, name=name, rising=rising, n_steps=n_steps)


def _factor(step: int, name: str, rising: int, n_steps: int) -> float:
    if step < rising:
        return (step + 1) / rising
    if name == "constant":
        return 1.0
    left = max(n_steps - step, 0) / max(n_steps - rising, 1)  # of the updates after warm-up
    return (1 - math.cos(math.pi * left)) / 2 if name == "cosine" else left


# ---- of an estimator


def given(model: Model, *names: str) -> Any:
    """Return what `net_params` has by the first of these names, or the parameter of the last."""
    params = model.net_params or {}
    return next((params[name] for name in names if name in params), getattr(model, names[-1]))


def rows_of_update(model: Model) -> int:
    """Return the rows of one update, over all processes."""
    of_net = model.net_params or {}
    batches = of_net.get("gradient_accumulation", getattr(model, "gradient_accumulation", 1))
    return (
        int(given(model, "iterator_train__batch_size", "batch_size") * batches)
        * ranks.n_processes()
    )


def epochs_for(model: Model, n_rows: int, plan: Any = None) -> int:
    """Return the number of epochs of a fit on so many rows.

    Parameters
    ----------
    model : NetEstimator
    n_rows : int
    plan : FitPlan or None, default=None
        The fit; None is one of a head alone.
    """
    if (epochs := given(model, "max_epochs")) != "auto":
        return int(epochs)
    size = rows_of_update(model)
    if plan is None or not _learns_by_heart(model):
        return choose_epochs(n_rows, size)
    rows = plan.of_an_epoch
    n_rare = np.bincount(plan.dataset.targets[rows], minlength=2).min()
    return choose_epochs(n_rows, size, int(n_rare), rate_of(model))


def _learns_by_heart(model: Model) -> bool:
    """Return True if a fit is one that, made longer, was seen to learn wrong labels by heart.

    Where rows are held out, they tell when to stop.
    """
    config, adapted = _trained(model)
    trains_all = _frozen(model, config) != "encoder" and not adapted
    return trains_all and not model.early_stopping and model.task.has_two_classes(model)


def _trained(model: Model) -> tuple[Config, bool]:
    """Return the configuration of the encoder, and whether an adapter is trained in its place."""
    module = getattr(model, "module_", None)
    if module is None:  # before a fit
        return load_config(str(given(model, "backbone"))), given(model, "adapter") is not None
    return module.encoder.config, bool(module.adapted)


def _frozen(model: Model, config: Config) -> Any:
    """Return what is not trained, where all layers are the encoder."""
    layers = getattr(config, "num_hidden_layers", None)
    return "encoder" if layers is not None and model.frozen == layers else model.frozen


def patience_of(model: Model) -> int:
    """Return the epochs without a better score that `early_stopping` waits for."""
    if model.n_iter_no_change == "auto":
        return max(3, model.max_epochs_ // 3)
    return int(model.n_iter_no_change)


def check_optimizer(model: Model) -> None:
    """Refuse ``lr="auto"`` with an optimizer whose rates are not known: those of Adam's kin are."""
    optimizer = (model.net_params or {}).get("optimizer", torch.optim.AdamW)
    name = getattr(getattr(optimizer, "func", optimizer), "__name__", "")
    if given(model, "optimizer__lr", "lr") == "auto" and "adam" not in name.lower():
        raise ValueError(
            f"lr='auto' with net_params: optimizer={shown(optimizer)}: the rates that are "
            "known are those of Adam and its kin; give lr as a number"
        )


def rate_of(model: Model, *, constant: bool = False) -> float:
    """Return the learning rate of a fit that is planned."""
    if (rate := given(model, "optimizer__lr", "lr")) != "auto":
        return float(rate)
    config, adapted = _trained(model)
    return choose_rate(
        getattr(config, "hidden_size", 768),
        _frozen(model, config),
        kind=config.model_type,
        two_classes=model.task.has_two_classes(model),
        adapted=adapted,
        constant=constant,
        batch_share=rows_of_update(model) / type(model).batch_size,
    )
