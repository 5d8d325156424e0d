"""The loss that an estimator is given: what it may not set, and whether it fits the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from skdice._checks import shown
from skdice.losses.base import PER_CLASS, Loss, resolve_loss

# What an estimator knows itself: the value that leaves it to the estimator, and how it is said.
LEFT_TO_ESTIMATOR: dict[str, tuple[Any, str]] = {
    "ignore_index": (-100, "in y, None marks what has no label"),
    "multilabel": (False, "y tells, as 0/1 rows or lists of labels"),
    "background": ("auto", "it is the tag O, or of two classes the one that is not `pos_label`"),
    "reduction": ("mean", "training takes the mean; `lr` scales it"),
}


def check_given(loss: str | Loss) -> Loss:
    """Return the loss that an estimator is given, which may not set what the estimator knows.

    Parameters
    ----------
    loss : str or Loss

    Raises
    ------
    ValueError
        If it, or a part of it, sets one of `LEFT_TO_ESTIMATOR`; or if the name is unknown.
    TypeError
        If it is neither a name nor a loss of skdice.

    Examples
    --------
    >>> from skdice.losses.of_estimator import check_given
    >>> check_given("dice")
    DiceLoss()
    """
    given = resolve_loss(loss)
    for part in losses_in(given):
        params = part.get_params(deep=False)
        for parameter in LEFT_TO_ESTIMATOR.keys() & params.keys():
            left, way_out = LEFT_TO_ESTIMATOR[parameter]
            value = params[parameter]
            if type(value) is not type(left) or value != left:
                raise ValueError(
                    f"loss={shown(given)} sets {parameter}={shown(value)}, which the estimator "
                    f"sets by itself: leave it out ({way_out})"
                )
    return given


def check_classes(loss: str | Loss, classes: Any, multilabel: bool = False) -> None:
    """Refuse factors of classes, such as a `class_weight`, that do not fit these classes.

    Parameters
    ----------
    loss : str or Loss
    classes : sequence of shape (n_classes,)
        The labels, in the order of the logits.
    multilabel : bool, default=False

    Raises
    ------
    ValueError
        If there are not as many factors as classes, or a dict names a label that is none of them.
    """
    given = resolve_loss(loss)
    try:
        clone(given).prepare(np.ones(len(classes)), multilabel=multilabel, classes=classes)
    except ValueError as error:
        raise ValueError(f"loss={shown(given)}: {error}") from error


def has_factors(loss: str | Loss) -> bool:
    """Return True if a loss has factors that may not fit the classes."""
    parts = losses_in(resolve_loss(loss))
    return any(hasattr(getattr(p, name, 0), "__len__") for p in parts for name in PER_CLASS)


def losses_in(loss: Any) -> list[Loss]:
    """A loss and the losses that it consists of."""
    return [part for part in loss.modules() if isinstance(part, Loss)]
