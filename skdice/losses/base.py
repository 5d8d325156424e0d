"""The base of all losses: parameters, knowledge of the training data, call, and registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from sys import float_info
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor, nn

from skdice._checks import KINDS, as_numbers, checked, shown
from skdice._compat import Interval, StrOptions
from skdice.losses._parameters import MOST, ParametrizedModule
from skdice.losses.inputs import LossInputs, read_inputs
from skdice.losses.search_ranges import OneMinus, Range, Ranges

REDUCTIONS = ("mean", "sum", "none")
SHARED = ("ignore_index", "multilabel", "reduction")
PER_CLASS = ("alpha", "class_weight")  # parameters that may hold a number for each class

# What an estimator knows itself: the value that leaves it to the estimator, and how it is said.
LEFT_TO_ESTIMATOR: dict[str, tuple[Any, str]] = {
    "ignore_index": (-100, "in y, None marks what has no label"),
    "multilabel": (False, "y tells, as 0/1 rows or lists of labels"),
    "background": ("auto", "it is the tag O, or of two classes the one that is not `pos_label`"),
    "reduction": ("mean", "training takes the mean; `lr` scales it"),
}

LOSSES: dict[str, type[Loss]] = {}  # by name, filled as classes are defined


@dataclass(kw_only=True, eq=False, repr=False)
class Loss(ParametrizedModule):
    """Base of skdice's losses: a `torch.nn` loss with scikit-learn's parameters.

    A loss takes logits and targets of these shapes:

    ============== ===================== ==========================================
    problem        logits                target
    ============== ===================== ==========================================
    binary         (N,) or (N, 1)        0/1 of shape (N,) or (N, 1)
    multi-class    (N, C)                class indices (N,), or distributions (N, C)
    tagging        (N, L, C)             class indices (N, L)
    multi-label    (N, C)                0/1 of shape (N, C), with ``multilabel=True``
    ============== ===================== ==========================================

    Where torch.distributed runs, as in a loop with `DistributedDataParallel`, the loss counts over
    the batches of all processes while gradients are on, so that the averaged gradient is that of
    one batch with all rows. Every process must then call it as often as the others. This is new,
    and may change.

    A subclass is a dataclass of its parameters, with a `kernel` that computes the loss of
    `LossInputs` and takes these parameters as keywords. A subclass that defines a `name` can be
    given by it, as in ``loss="dice"``. One in which an example of weight 0 changes nothing sets
    ``heeds_weights = True``, so that a GPU can train with it in batches of one shape.

    Parameters
    ----------
    ignore_index : int, default=-100
        The target of rows or tokens that do not count. Not for estimators, which set it.
    multilabel : bool, default=False
        Whether the columns of the logits are labels of their own. Not for estimators either.
    reduction : {"mean", "sum", "none"}, default="mean"
        Of the losses of the examples.

    Examples
    --------
    >>> from skdice.losses import DiceLoss, Loss
    >>> isinstance(DiceLoss(), Loss), DiceLoss().get_params()["smooth"]
    (True, 0.01)
    """

    name: ClassVar[str]
    # kernel(inputs, **values) is the loss. Its keywords are the parameters, the `needed_buffers`,
    # and the `parts` as functions of inputs.
    kernel: ClassVar[Callable[..., Tensor]]
    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ignore_index": [Interval(Integral, -int(MOST), int(MOST), closed="both")],
        "multilabel": [KINDS["bool"]],
        "reduction": [StrOptions(set(REDUCTIONS))],
    }
    # Ranges that are worth searching, by parameter.
    searched: ClassVar[Ranges] = {}
    # Buffers of `prepare` that the kernel takes, without their underscore.
    needed_buffers: ClassVar[tuple[str, ...]] = ()
    # Whether question answering takes it as a softmax over the positions of a window.
    normalizes_over_positions: ClassVar[bool] = False
    # Whether an example of weight 0 changes nothing. Losses of that kind are padded to shapes that
    # recur on a GPU. A class with a `kernel` or `forward` of its own says so itself.
    heeds_weights: ClassVar[bool] = False
    # Whether it counts over the batches of all processes. An estimator that trains alone in one of
    # several processes says no.
    all_ranks = True
    # Whether the background class does not count, so that the loss must know which one it is.
    excludes_background: ClassVar[bool] = False

    ignore_index: int = -100
    multilabel: bool = False
    reduction: str = "mean"

    # Buffers that `prepare` registers.
    class_counts_: Tensor = field(init=False)
    n_samples_: Tensor = field(init=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if ("kernel" in own or "forward" in own) and "heeds_weights" not in own:
            cls.heeds_weights = False  # whatever the class above it says of its own
        if "name" in cls.__dict__:
            _register(cls)

    def resolve_part(self, name: str, value: Any) -> Loss:
        """A part of this loss by its name, or as it is."""
        return resolve_loss(value, name)

    # ---- properties that decide how it can be used

    @property
    def is_set_level(self) -> bool:
        """True of more than a mean over examples, where losses of batches do not add up."""
        return any(part.is_set_level for part in self.parts.values())

    @property
    def has_functional_form(self) -> bool:
        """True if a call computes the kernel, which many settings can do at once."""
        parts = all(part.has_functional_form for part in self.parts.values())
        return parts and type(self).forward is Loss.forward

    @classmethod
    def search_space(cls) -> dict[str, Range | OneMinus]:
        """Parameters that are worth searching, and their ranges."""
        return dict(cls.searched)

    # ---- what it knows of the training data

    def start_bias(self) -> Tensor | None:
        """The first bias of a new head, of shape (n_classes,); None begins at zero."""
        return None

    @checked
    def prepare(
        self,
        class_counts: Any,
        background: int | None = None,
        multilabel: bool = False,
        n_samples: float | None = None,
        classes: Any = None,
    ) -> Self:
        """Tell the loss about the training data, once, before training.

        Parameters
        ----------
        class_counts : array of shape (n_classes,)
            Training examples (tokens, for a tagger) of each class; (2,) for one logit.
        background : int or None, default=None
            Index of the background class, if there is one.
        multilabel : bool, default=False
            Whether the targets are 0/1 rows.
        n_samples : float or None, default=None
            Number of training examples. None is the sum of `class_counts`; of several labels a row
            it has to be told.
        classes : array of shape (n_classes,) or None, default=None
            The labels, for a `class_weight` by label. None numbers them from 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a count is negative or not finite, `n_samples` is missing, `background` is not the
            index of a class, a parameter has another number of factors than there are classes, or
            `class_weight` names a label that is not in `classes`.
        """
        counts = as_numbers("class_counts", class_counts)
        if len(counts) == 0 or (counts < 0).any():
            raise ValueError(f"class_counts={shown(class_counts)} must hold numbers of at least 0")
        if background is not None and not 0 <= background < len(counts):
            raise ValueError(
                f"background={background!r} must be None or one of the {len(counts)} classes that "
                "class_counts has"
            )
        if n_samples is None and (multilabel or self.multilabel):
            raise ValueError(
                "class_counts of several labels a row do not add up to the rows: call "
                "loss.prepare(class_counts, n_samples=...) with their number"
            )
        n = float(counts.sum() if n_samples is None else n_samples)
        if not 0 <= n < np.inf:
            raise ValueError(f"n_samples={n_samples!r} must be finite and at least 0")
        for part in self.parts.values():
            part.prepare(class_counts, background, multilabel, n_samples, classes)
        labels = _labels(classes, len(counts))
        factors = {name: getattr(self, name, None) for name in PER_CLASS}
        _check_lengths(factors, labels)
        self.background_ = background
        self.multilabel_ = multilabel
        self.register_buffer("class_counts_", torch.tensor(counts))
        self.register_buffer("n_samples_", torch.tensor(n, dtype=torch.float64))
        # As buffers, factors of classes move to the device once and not in every step.
        self._factors_on_device = {
            name: value
            for name, value in factors.items()
            if isinstance(value, (Sequence, Mapping, np.ndarray))
        }
        for name, value in self._factors_on_device.items():
            if isinstance(value, (str, Mapping)):
                value = _weights_of_classes(value, counts, n, multilabel, labels)
            self.register_buffer(f"{name}_", torch.tensor(value, dtype=torch.float64))
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def moved(tensor: Tensor) -> Tensor:
            try:
                return fn(tensor)
            except TypeError:  # Apple's GPUs have no float64
                return fn(tensor.float())

        return super()._apply(moved, recurse)

    # ---- the loss

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """The loss.

        Parameters
        ----------
        logits, target : Tensor
            Of the shapes that the class lists.
        sample_weight : Tensor of shape (N,) or of the target's shape, default=None
            Weight 2 is the example twice, and 0 leaves it out. A row's weight holds for all of its
            elements. Where the target is `ignore_index` nothing counts, whatever the weight.

        Returns
        -------
        Tensor
            A scalar, or with ``reduction="none"`` one value for each element.

        Raises
        ------
        ValueError
            If shapes do not fit, or a target or weight on the CPU is out of range. Values on other
            devices are not checked, since every step would have to wait for them.
        """
        return self._of(read_inputs(self, logits, target, sample_weight))

    def _of(self, inputs: LossInputs) -> Tensor:
        """The kernel's value for these inputs, by the parameters and what `prepare` was told."""
        values = {name: self._prepared(name) for name in self._names if name not in SHARED}
        if isinstance(values.get("background"), str):
            values["background"] = getattr(self, "background_", None)
        values.update({name: part._of for name, part in self.parts.items()})
        values.update({name: getattr(self, f"{name}_", None) for name in self.needed_buffers})
        return self.kernel(inputs, **values)

    def _prepared(self, name: str) -> Any:
        """A factor for each class as `prepare` understood it."""
        value = getattr(self, name)
        known = value is not None and getattr(self, "_factors_on_device", {}).get(name) is value
        return getattr(self, f"{name}_") if known else value

    @property
    def is_multilabel(self) -> bool:
        """True if the targets are 0/1 rows, by its own parameter or by what `prepare` was told."""
        return self.multilabel or getattr(self, "multilabel_", False)


def _labels(classes: Any, n_classes: int) -> list[Any]:
    """The label of each class, as Python has it."""
    if classes is None:
        return list(range(n_classes))
    if isinstance(classes, np.ndarray):
        return list(np.atleast_1d(classes).tolist())
    if isinstance(classes, (list, tuple)):
        return list(classes)
    raise ValueError(f"classes={shown(classes)} must hold the label of each class")


def _check_lengths(factors: Mapping[str, Any], labels: list[Any]) -> None:
    """Refuse a list or vector that has not one factor for each class."""
    for name, value in factors.items():
        if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
            continue
        one_logit = len(labels) == 1 and len(value) == 2  # of one label: its negatives, too
        if getattr(value, "ndim", 1) == 1 and len(value) != len(labels) and not one_logit:
            raise ValueError(
                f"{name}={shown(value)} has {len(value)} factors, and there are {len(labels)} "
                f"classes: give one for each of {shown(labels)}, in this order"
            )


def _weights_of_classes(
    value: str | Mapping[Any, float],
    counts: np.ndarray,
    n: float,
    multilabel: bool,
    labels: list[Any],
) -> np.ndarray:
    """A factor for each class from "balanced", or from factors by label; other labels have 1.

    Balanced factors are those of scikit-learn, n / (n_classes n_t): they make the classes weigh
    the same. Of several labels a row the factors are those of the positives, (n - n_t) / n_t.
    """
    if isinstance(value, Mapping):
        if unknown := [label for label in value if label not in labels]:
            raise ValueError(
                f"class_weight names {shown(unknown)}, and the labels of the training data are "
                f"{shown(labels)}: name those, or leave a label out for a factor of 1"
            )
        return np.array([value.get(label, 1.0) for label in labels])
    seen = np.where(counts > 0, counts, np.inf)
    times = np.minimum(seen, max(min(1.0, seen.min()), float_info.min))
    times = np.where(counts > 0, counts, times.min())  # or a factor would be infinite
    return (n - counts) / times if multilabel else n / ((counts > 0).sum() * times)


def _register(cls: type[Loss]) -> None:
    """Let a loss be given by its `name`. A class that is defined or imported again replaces it."""
    name, package = cls.name, __name__.rpartition(".")[0]
    if not (isinstance(name, str) and name):
        raise TypeError(f"{cls.__name__}.name={name!r} must be a string, which loss= can be given")
    taken = LOSSES.get(name)
    again = taken and (taken.__module__, taken.__name__) == (cls.__module__, cls.__name__)
    if taken is not None and taken.__module__.startswith(package) and not again:
        raise ValueError(
            f"{cls.__name__}.name={name!r} is the name of {taken.__name__}: choose another"
        )
    LOSSES[name] = cls


def _other_loss(loss: Any) -> str:
    """What to give in place of a class, or of a loss of torch or of the user's."""
    cls = loss if isinstance(loss, type) else type(loss)
    if issubclass(cls, Loss):
        return f". It is a class: give {cls.__name__}()"
    if not issubclass(cls, nn.Module):
        return ""
    twin = next((ours for ours in LOSSES.values() if ours.__name__ == cls.__name__), None)
    if twin is None:
        return ". One of your own is a subclass of skdice.losses.Loss"
    return f'. Its twin here is loss="{twin.name}", or an object of skdice.losses.{twin.__name__}'


def resolve_loss(loss: str | Loss, name: str = "loss") -> Loss:
    """Make a loss from its name, with default parameters. A loss object is returned as it is.

    Parameters
    ----------
    loss : str or Loss
    name : str, default="loss"
        What errors call it, such as ``"first"``.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        If there is no loss of that name.
    TypeError
        If `loss` is neither.

    Examples
    --------
    >>> from skdice.losses.base import resolve_loss
    >>> resolve_loss("focal"), resolve_loss("dsc")
    (FocalLoss(), DSCLoss())
    """
    if isinstance(loss, Loss):
        return loss
    known = f"one of {list(LOSSES)}, or a loss object of skdice.losses"
    if not isinstance(loss, str):
        raise TypeError(f"{name}={shown(loss)} must be {known}{_other_loss(loss)}")
    if loss not in LOSSES:
        raise ValueError(f"{name}={shown(loss)} is unknown: use {known}")
    return LOSSES[loss]()


# ---- the loss that an estimator is given


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
    >>> from skdice.losses.base import check_given
    >>> check_given("dice")
    DiceLoss()
    """
    given = resolve_loss(loss)
    for part in losses_in(given):
        for parameter, (left, way_out) in LEFT_TO_ESTIMATOR.items():
            value = getattr(part, parameter, left)
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
        n = len(classes)
        clone(given).prepare(np.ones(n), multilabel=multilabel, n_samples=n, classes=classes)
    except ValueError as error:
        raise ValueError(f"loss={shown(given)}: {error}") from error


def has_factors(loss: str | Loss) -> bool:
    """Return True if a loss has factors that may not fit the classes."""
    parts = losses_in(resolve_loss(loss))
    return any(hasattr(getattr(p, name, 0), "__len__") for p in parts for name in PER_CLASS)


def losses_in(loss: Any) -> list[Loss]:
    """A loss and the losses that it consists of."""
    return [part for part in loss.modules() if isinstance(part, Loss)]
