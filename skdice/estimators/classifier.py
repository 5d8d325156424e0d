"""DiceClassifier: the losses on numbers, as an ordinary scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import f1_score
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from skdice._compat import Interval, StrOptions, check_sample_weight
from skdice.engine.batching import Padder
from skdice.engine.net import Batch, FineTuningNet, check_callbacks, resolve_device, seeded
from skdice.engine.schedules import SCHEDULES
from skdice.estimators._base import check_device, check_reduction, draw_seed, split_indices
from skdice.losses import Loss, resolve_loss
from skdice.metrics import positive_class

__all__ = ["DiceClassifier"]


@dataclass
class Rows:
    """Rows of numbers with targets and weights."""

    X: Any
    y: np.ndarray | None = None
    weight: np.ndarray | None = None


class TableNet(FineTuningNet):
    """`FineTuningNet` on rows of an array or a sparse matrix."""

    def updates(self, dataset: Any, epoch: int) -> Iterator[list[Batch]]:
        order = np.random.default_rng([self.shuffle_seed, epoch]).permutation(dataset.X.shape[0])
        for start in range(0, len(order), self.batch_size):
            rows = np.sort(order[start : start + self.batch_size])
            weight = None if dataset.weight is None else torch.from_numpy(dataset.weight[rows])
            yield [([{"X": _tensor(dataset.X[rows])}], torch.from_numpy(dataset.y[rows]), weight)]

    def n_updates(self, dataset: Any) -> int:
        return -(-dataset.X.shape[0] // self.batch_size)

    @torch.no_grad()
    def logits(self, dataset: Any, batch_size: int | None = None) -> Any:
        self._set_training(False)
        size = batch_size or 4096
        parts = [
            self._logits([{"X": _tensor(dataset.X[start : start + size])}]).cpu().numpy()
            for start in range(0, dataset.X.shape[0], size)
        ]
        return np.concatenate(parts)


class Head(nn.Module):
    """The user's module, or a linear layer or MLP, called with ``X=``."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.body(X)


def _row_keys(X: Any) -> list[Any]:
    """Something for each row that equal rows have in common."""
    if not sparse.issparse(X):
        return [row.tobytes() for row in X]
    parts = [slice(*ends) for ends in pairwise(X.indptr)]
    return [(X.indices[part].tobytes(), X.data[part].tobytes()) for part in parts]


def _tensor(rows: Any) -> torch.Tensor:
    dense = rows.toarray() if sparse.issparse(rows) else np.array(rows)  # a copy: may be read-only
    return torch.from_numpy(dense)


def _mlp(sizes: list[int], dropout: float) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes[:-1]):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class DiceClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows of numbers with the losses of this package.

    Parameters
    ----------
    loss : str or Loss, default="dsc"
        A name, or a loss object such as ``TverskyLoss(alpha=0.3, beta=0.7)``.
    pos_label : label or None, default=None
        The positive class of a binary problem, whose F1 the overlap losses optimise. None is the
        label 1 of {0, 1} or {-1, 1}, and otherwise the rarer class. Inside a meta-estimator that
        numbers the labels (voting, stacking, bagging, one-vs-rest) give the number.
    hidden_layer_sizes : tuple of int, default=()
        Layers of an MLP with ReLU; none is a linear classifier.
    module : torch.nn.Module, callable or None, default=None
        A module from (n_rows, n_features) to (n_rows, n_classes) logits, which is copied, or a
        callable that makes one from ``(n_features, n_classes)``; in place of the MLP.
    max_epochs : int, default=100
    lr : float, default=0.05
        Peak learning rate of AdamW.
    batch_size : int, default=256
        Rows in a batch; the overlap losses count over these.
    weight_decay : float, default=0.0
    schedule : {"linear", "constant", "cosine", "polynomial", "one_cycle"}, default="linear"
    warmup : float, default=0.0
    dropout : float, default=0.0
        After each hidden layer.
    device : str, default="auto"
    early_stopping : bool, default=False
        Stop when F1 on held-out rows stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
    callbacks : list of skorch callbacks or None, default=None
        Not `LRScheduler`, as `schedule` sets the rate, nor those that score, as `early_stopping`
        records ``valid_score``.
    net_params : dict or None, default=None
        Further settings of the skorch net, such as ``{"optimizer": torch.optim.SGD}`` or
        ``{"optimizer__param_groups": [("*bias", {"lr": 1e-3})]}``: parameters so named have these
        settings of the optimiser, and `schedule` scales their own rate.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    positive_ : int
        Index of the positive class of two.
    n_features_in_ : int
    net_ : skorch net
    history_ : list of dict
    n_iter_ : int

    Notes
    -----
    Computes in float32 for float32 input and in float64 otherwise.

    The vectors of `TransformerFeatures` need no scaling. With fewer rows than columns do not
    standardise them: as in any linear layer that Adam trains without a penalty, the weights then
    fit the rows before the intercept has moved, and many other rows are called positive.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import DiceClassifier
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> clf = DiceClassifier(loss="dsc", random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (100, 2)
    """

    _parameter_constraints: dict[str, Any] = {
        "loss": [str, Loss],
        "pos_label": "no_validation",
        "hidden_layer_sizes": ["array-like"],
        "module": [nn.Module, callable, None],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "warmup": [Interval(Real, 0, 1, closed="both")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "device": [str],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "callbacks": [list, None],
        "net_params": [dict, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "dsc",
        pos_label: Any = None,
        hidden_layer_sizes: tuple[int, ...] = (),
        module: nn.Module | Callable[[int, int], nn.Module] | None = None,
        max_epochs: int = 100,
        lr: float = 0.05,
        batch_size: int = 256,
        weight_decay: float = 0.0,
        schedule: str = "linear",
        warmup: float = 0.0,
        dropout: float = 0.0,
        device: str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        callbacks: list[Any] | None = None,
        net_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.pos_label = pos_label
        self.hidden_layer_sizes = hidden_layer_sizes
        self.module = module
        self.max_epochs = max_epochs
        self.lr = lr
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.dropout = dropout
        self.device = device
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.callbacks = callbacks
        self.net_params = net_params
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__alpha`` also works while `loss` is a name."""
        if any(key.startswith("loss__") for key in params):
            self.loss = resolve_loss(params.pop("loss", self.loss))
        return super().set_params(**params)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows of numbers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), default=None

        Returns
        -------
        self
        """
        self._validate_params()
        check_reduction(resolve_loss(self.loss))
        check_callbacks(self.callbacks, self.net_params)
        # Apple's GPUs do not know float64.
        kinds = [np.float32] if check_device(self.device) == "mps" else [np.float64, np.float32]
        device = resolve_device(self.device)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=kinds, multi_output=False)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        if sample_weight is not None:
            sample_weight = check_sample_weight(
                sample_weight, X, dtype=X.dtype, ensure_non_negative=True
            )
            # A weight of 0 is the row left out, also for what its class counts.
            kept = sample_weight > 0
            X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
        classes, target = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only ({classes.tolist()}): a classifier needs 2 classes or more"
            )
        counts = np.bincount(target, weights=sample_weight)
        background = None
        if len(classes) == 2:
            background = 1 - positive_class(classes, counts, self.pos_label)
        seed = draw_seed(self.random_state)
        held = None
        if self.early_stopping:
            train, validation = split_indices(
                len(y), self.validation_fraction, seed, target, _row_keys(X)
            )
            held = Rows(X[validation]), target[validation]
            X, target = X[train], target[train]
            sample_weight = None if sample_weight is None else sample_weight[train]

        self.classes_ = classes
        self.__dict__.pop("positive_", None)
        if background is not None:
            self.positive_ = 1 - background
        criterion = clone(resolve_loss(self.loss)).prepare(counts, background=background)
        with seeded(seed, device):
            net = self._make_net(criterion, X, seed, device)
            net.initialize()
            if self.module is not None:
                with seeded(seed, device):  # which leaves training's random state as it is
                    self._check_outputs(net, X)
            self.net_ = net
            if held is not None:
                rows, truth = held
                net.validation_score = lambda _: self._f1(rows, truth, background)
                net.patience = self.n_iter_no_change
            try:
                dataset: Any = Rows(X, target, sample_weight)
                net.partial_fit(dataset)
            finally:
                net.validation_score = None
                epochs = [{k: v for k, v in e.items() if k != "batches"} for e in net.history]
                self.history_ = [epoch for epoch in epochs if "train_loss" in epoch]
                self.n_iter_ = len(self.history_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n, n_classes)."""
        return softmax(self._logits(X), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,)."""
        best = self._logits(X).argmax(axis=1)
        return self.classes_[best]

    # ---- the steps

    def _make_net(self, criterion: Loss, X: Any, seed: int, device: str) -> TableNet:
        n_features, n_classes = X.shape[1], len(self.classes_)
        if isinstance(self.module, nn.Module):
            body = copy.deepcopy(self.module)
        elif self.module is not None:
            body = self.module(n_features, n_classes)
        else:
            body = _mlp([n_features, *map(int, self.hidden_layer_sizes), n_classes], self.dropout)
        dtype = torch.float32 if X.dtype == np.float32 or device == "mps" else torch.float64
        settings: dict[str, Any] = dict(
            criterion=criterion,
            padder=Padder(0),
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            warmup=self.warmup,
            precision="fp32",
            max_grad_norm=None,
            shuffle_seed=seed,
            max_epochs=self.max_epochs,
            lr=self.lr,
            batch_size=self.batch_size,
            device=device,
            train_split=None,
            callbacks=clone(self.callbacks, safe=False) if self.callbacks else None,
            verbose=int(self.verbose),
        )
        return TableNet(Head(body).to(dtype), **{**settings, **(self.net_params or {})})

    def _check_outputs(self, net: TableNet, X: Any) -> None:
        """Refuse a module that gives other than one logit for each class."""
        rows = X[:2]  # not one, of which some modules make a vector
        wanted = (rows.shape[0], len(self.classes_))
        found = net.logits(Rows(rows)).shape
        if found != wanted:
            raise ValueError(
                f"module makes outputs of shape {found} from {wanted[0]} rows, and y holds "
                f"{wanted[1]} classes: it must make {wanted}, one logit for each class"
            )

    def _logits(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        kinds = [np.float64, np.float32]
        X = validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)
        dtype = next(self.net_.module_.parameters()).dtype
        return self.net_.logits(Rows(X.astype(str(dtype).removeprefix("torch."), copy=False)))

    def _f1(self, rows: Rows, truth: np.ndarray, background: int | None) -> float:
        found = self.net_.logits(rows).argmax(axis=1)
        if background is not None:
            return float(
                f1_score(truth == 1 - background, found == 1 - background, zero_division=0)
            )
        return float(f1_score(truth, found, average="macro", zero_division=0))
