"""DiceClassifier: the losses on numbers, as an ordinary scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import validate_data
from torch import nn

from skdice._checks import as_numbers, check_unmasked, reading_numbers, shown
from skdice._fitting import of_one_fit
from skdice.engine.devices import resolve_device, seeded
from skdice.engine.dropout import FastDropout
from skdice.engine.layouts import Batch, Padding
from skdice.engine.net import FineTuningNet
from skdice.engine.plan import FitPlan
from skdice.estimators._net_estimator import NetEstimator
from skdice.estimators._parameters import documented
from skdice.estimators.checks import check_device, draw_seed, split_indices
from skdice.estimators.scores import ClassScores, decision_scores
from skdice.metrics import positive_class
from skdice.metrics.labels import read_labels
from skdice.tasks import check_occurring, fresh_loss
from skdice.tasks.classification import decided
from skdice.text.inputs import check_weights, row_keys


@dataclass
class NumericDataset:
    """Rows of numbers with targets and weights."""

    X: Any  # an array or a sparse matrix
    targets: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return self.X.shape[0]


class NumericNet(FineTuningNet):
    """`FineTuningNet` on rows of an array or a sparse matrix."""

    def layout(self, dataset: Any) -> None:
        """There is none: all rows are equally long."""

    def batches(self, dataset: Any, rows: np.ndarray, layout: Any = None) -> list[Batch]:
        """All rows of an update at once, in the order of the data."""
        place = np.sort(rows)
        weight = None if dataset.weight is None else torch.from_numpy(dataset.weight[place])
        # Indexing by row numbers has made a copy already.
        X = _tensor(dataset.X[place], copy=False)
        return [([{"X": X}], torch.from_numpy(dataset.targets[place]), weight)]

    @torch.no_grad()
    def logits(self, dataset: Any, batch_size: int | None = None) -> Any:
        """Logits of all rows, an array of shape (n_rows, n_classes)."""
        module, size = self.module_to_predict(), batch_size or 4096
        parts = [
            self.outputs(module, [{"X": _tensor(dataset.X[start : start + size])}]).cpu().numpy()
            for start in range(0, len(dataset), size)
        ]
        return np.concatenate(parts)


class Head(nn.Module):
    """The user's module, or a linear layer or MLP, called with ``X=``."""

    def __init__(self, body: nn.Module, *, of_user: bool) -> None:
        super().__init__()
        self.body = body
        self.of_user = of_user

    def torch_draws(self, own_attention: bool) -> bool:
        """Return True if training may draw in other ways than by `FastDropout`."""
        return self.of_user

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n_rows, n_classes)."""
        return self.body(X)


def _tensor(rows: Any, copy: bool = True) -> torch.Tensor:
    if sparse.issparse(rows):
        return torch.from_numpy(rows.toarray())
    return torch.from_numpy(np.array(rows) if copy else np.asarray(rows))


def _mlp(sizes: list[int], dropout: float) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU(), FastDropout(dropout)]
    return nn.Sequential(*layers[:-2])


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceClassifier(ClassScores, ClassifierMixin, NetEstimator):
    """Classify rows of numbers with the losses of this package.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Sizes of the hidden layers of an MLP with ReLU. The default is a linear classifier.
    module : torch.nn.Module, callable or None
        A module from (n_rows, n_features) to (n_rows, n_classes) logits, which is copied, or a
        callable that makes one from ``(n_features, n_classes)``; in place of the MLP.
    max_epochs : int
        Number of passes over the training data.
    lr : float
        Peak learning rate of AdamW.
    batch_size : int
        Rows in a batch. The overlap losses count over these rows.
    dropout : float
        Dropout after each hidden layer.
    early_stopping : bool
        Stop when `score` on held-out rows stops rising, and restore the best epoch.
    n_iter_no_change : int
        Epochs without a better score before `early_stopping` ends the fit.
    callbacks : list of skorch callbacks or None
        Callbacks for the skorch net. `LRScheduler` is refused: use `schedule`. Callbacks that score
        are refused: `early_stopping` records ``valid_score``.
    net_params : dict or None
        Further settings of the skorch net, such as ``{"optimizer": torch.optim.SGD}``. With
        ``{"optimizer__param_groups": [("*bias", {"lr": 1e-3})]}`` the parameters of these names
        have their own settings; `schedule` scales the rate.
    verbose : int
        Above 0, print a line for each epoch, and the time left.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether a row may have several labels, or none.
    positive_ : int
        Index of the positive class of two.
    n_features_in_ : int

    Notes
    -----
    Computes in float32 on a GPU and for float32 input. Other input is computed in float64 on a CPU,
    as in scikit-learn, in up to a quarter more time: ``X.astype("float32")`` saves that.

    The vectors of `TransformerFeatures` need no scaling. With fewer rows than columns do not
    standardise them: as in any linear layer that Adam trains without a penalty, the weights then
    fit the rows before the intercept has moved, and many other rows are predicted positive.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetEstimator._parameter_constraints,
        "pos_label": "no_validation",
        "hidden_layer_sizes": ["array-like"],
        "module": [nn.Module, callable, None],
    }

    pos_label: Any = None
    hidden_layer_sizes: tuple[int, ...] = ()
    module: nn.Module | Callable[[int, int], nn.Module] | None = None
    max_epochs: int = 100
    lr: float = 0.05
    batch_size: int = 256
    weight_decay: float = 0.0
    warmup: float = 0.0
    dropout: float = 0.0
    n_iter_no_change: int = 10

    net_: NumericNet = field(init=False)
    classes_: np.ndarray = field(init=False)
    multilabel_: bool = field(init=False)
    positive_: int = field(init=False)
    n_features_in_: int = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows of numbers.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,); or several labels a row, as for `DiceSequenceClassifier`
        sample_weight : array of shape (n_rows,), default=None

        Returns
        -------
        self
        """
        return self._run(self._draft()._prepare(X, y, sample_weight))

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> FitPlan:
        """Check the data, learn the classes, set rows aside, and make the module."""
        self._check_params()
        # Most GPUs are many times slower in float64, and Apple's have none.
        on_cpu = check_device(self.device) == "cpu"
        kinds = [np.float64, np.float32] if on_cpu else [np.float32]
        check_unmasked("X", X)
        with reading_numbers("X"):
            X = validate_data(self, X, accept_sparse="csr", dtype=kinds)
        labels = read_labels(y, X.shape[0])
        if getattr(y, "ndim", 1) == 2 and not labels.multilabel:
            column_or_1d(y, warn=True)
        y, multilabel = labels.values, labels.multilabel
        if (weights := check_weights(sample_weight, len(y))) is not None:
            # A row of weight 0 is left out, also from the class counts.
            kept = weights > 0
            X, y, sample_weight = X[kept], y[kept], weights[kept].astype(X.dtype)
        if multilabel:
            check_occurring(labels)
            classes, target = labels.classes, y.astype(X.dtype)
        else:
            classes, target = np.unique(y, return_inverse=True)
        if len(classes) < 2 and not multilabel:
            raise ValueError(
                f"y holds one class only ({classes.tolist()}): a classifier needs 2 classes or more"
            )
        self.__dict__.pop("positive_", None)
        background = None
        if len(classes) == 2 and not multilabel:
            counts = np.bincount(target, weights=sample_weight)
            self.positive_ = positive_class(classes, counts, self.pos_label)
            background = 1 - self.positive_
        self.classes_, self.multilabel_ = classes, multilabel
        seed, held = draw_seed(self.random_state), None
        if self.early_stopping:
            keys = row_keys(X)
            strata = None if multilabel else target
            train, validation = split_indices(keys, self.validation_fraction, seed, strata)
            held = NumericDataset(X[validation], target[validation])
            X, target = X[train], target[train]
            sample_weight = None if sample_weight is None else sample_weight[train]
        share = np.ones(len(target)) if sample_weight is None else sample_weight
        counts = share @ target if multilabel else np.bincount(target, share, len(classes))
        criterion = fresh_loss(self.loss).prepare(
            counts, background, multilabel, float(share.sum()) if multilabel else None, classes
        )
        dataset = NumericDataset(X, target, sample_weight)
        self.module_ = self._make_module(X, seed)
        return FitPlan(
            dataset=dataset, criterion=criterion, seed=seed, validation=held, fitted=self.__dict__
        )

    @of_one_fit
    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
        return decided(self, self._logits(X))

    @of_one_fit
    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        return decision_scores(self, self._logits(X))

    @of_one_fit
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n, n_classes); rows sum to 1 unless multi-label."""
        logits = self._logits(X)
        return expit(logits) if self.multilabel_ else softmax(logits, axis=1)

    # ---- the steps

    def _make_module(self, X: Any, seed: int) -> Head:
        n_features, n_classes = X.shape[1], len(self.classes_)
        device = resolve_device(self.device)
        with seeded(seed, device):
            if isinstance(self.module, nn.Module):
                body = copy.deepcopy(self.module)
            elif self.module is not None:
                body = self.module(n_features, n_classes)
            else:
                sizes = as_numbers("hidden_layer_sizes", self.hidden_layer_sizes)
                if (sizes < 1).any() or (sizes % 1).any():
                    given = shown(self.hidden_layer_sizes)
                    raise ValueError(f"hidden_layer_sizes={given} must be integers of at least 1")
                body = _mlp([n_features, *map(int, sizes), n_classes], self.dropout)
        dtype = torch.float32 if X.dtype == np.float32 else torch.float64
        head = Head(body, of_user=self.module is not None).to(dtype)
        if self.module is not None:
            self._check_outputs(head, X, seed, dtype)
        return head

    def _check_outputs(self, head: Head, X: Any, seed: int, dtype: torch.dtype) -> None:
        """Refuse a module that does not give one logit for each class."""
        rows = _tensor(X[:2])  # two, as some modules turn a single row into a vector
        wanted = (rows.shape[0], len(self.classes_))
        try:
            with seeded(seed, "cpu"), torch.no_grad():
                shape = tuple(copy.deepcopy(head).cpu().eval()(rows.to(dtype)).shape)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"module fails on rows of {rows.shape[1]} features: {error}"
            ) from error
        if shape != wanted:
            raise ValueError(
                f"module makes outputs of shape {shape} from {wanted[0]} rows, and y holds "
                f"{wanted[1]} classes: it must make {wanted}, one logit for each class"
            )

    def _make_net(self, criterion: Any, seed: int) -> NumericNet:
        settings = self._net_settings(
            criterion, seed, padding=Padding(0), precision="fp32", max_grad_norm=None
        )
        # From here on only the net holds the module.
        return NumericNet(self.__dict__.pop("module_"), **settings)

    def _logits(self, X: Any) -> np.ndarray:
        self._check_fitted()
        kinds = [np.float64, np.float32]
        check_unmasked("X", X)
        with reading_numbers("X"):
            X = validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)
        kind = str(next(self.net_.module_.parameters()).dtype).removeprefix("torch.")
        return self.net_.logits(NumericDataset(X.astype(kind, copy=False)))

    def _validation_score(self, held: Any) -> float:
        truth = held.targets if self.multilabel_ else self.classes_[held.targets]
        return self.score(held.X, truth)
