"""DiceClassifier: the losses on numbers, as an ordinary scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags
from torch import nn

from skdice._compat import StrOptions
from skdice._types import ArrayLike, Data
from skdice.engine.layouts.layout import Padding
from skdice.engine.net import FineTuningNet
from skdice.estimators._documented import documented
from skdice.estimators._net_estimator import NetEstimator
from skdice.estimators.evaluation import FromLogits
from skdice.tasks.numbers import Numbers, NumericDataset, as_tensor, checked_rows


class NumericNet(FineTuningNet):
    """`FineTuningNet` on rows of an array or a sparse matrix."""

    def get_dataset(self, X: Data, y: Any = None) -> NumericDataset:
        """Rows of numbers with class indices, as skorch users give them, or such a data set."""
        return X if isinstance(X, NumericDataset) else NumericDataset(X, y)

    def layout(self, dataset: object) -> None:
        """There is none: all rows are equally long."""

    @torch.no_grad()
    def logits(self, dataset: Any) -> Any:
        """Logits of all rows, an array of shape (n_rows, n_classes)."""
        self._set_training(False)
        size = 4096
        parts = [
            self.outputs([{"X": as_tensor(dataset.X[start : start + size])}]).cpu().numpy()
            for start in range(0, len(dataset), size)
        ]
        return np.concatenate(parts)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceClassifier(FromLogits, NetEstimator):
    """Classify rows of numbers with the losses of this package.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Sizes of the hidden layers of an MLP with ReLU. The default is a linear classifier.
    max_epochs : int
        Number of passes over the training data.
    lr : float
        Peak learning rate of AdamW.
    batch_size : int or "auto"
        Rows in a batch, over which the overlap losses count. ``"auto"`` is as many as hold 30 rows
        of the rarest class on average, the positive one if there are two; but at least 256, and at
        most all rows. Of several labels a row, it is the rarest label.
    dropout : float
        Dropout after each hidden layer.
    early_stopping : bool
        Stop when `score` on held-out rows stops rising, and restore the best epoch.
    n_iter_no_change : int
        Epochs without a better score before `early_stopping` ends the fit.
    net_params : dict or None
        Further settings of the skorch net, as in skorch's documentation, such as
        ``{"optimizer": torch.optim.SGD}``. They override parameters of the same name. With
        ``{"optimizer__param_groups": [("*bias", {"lr": 1e-3})]}`` the parameters of these names
        have their own settings; `schedule` scales the rate. Refused are ``module``, ``criterion``,
        ``callbacks``, ``train_split``, ``warm_start`` and ``compile``.
    verbose : int
        Above 0, print the rate, the number of epochs and updates, then skorch's table of epochs; in
        a terminal also its progress bar. With `checkpoint_dir` it says whether the fit begins, goes
        on, or was finished before.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
        Whether a row may have several labels, or none.
    positive_ : int
        Index of the positive class of two.
    n_features_in_ : int
    batch_size_ : int
        The rows of a batch in the last fit.

    Warns
    -----
    DataWarning
        If a given `batch_size` holds fewer than three rows of the rarest class on average, with a
        loss that counts over a batch.

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

    task: ClassVar[Numbers] = Numbers()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetEstimator._parameter_constraints,
        "batch_size": [*NetEstimator._parameter_constraints["batch_size"], StrOptions({"auto"})],
        "pos_label": "no_validation",
        "hidden_layer_sizes": ["array-like"],
    }

    pos_label: Hashable | None = None
    hidden_layer_sizes: tuple[int, ...] = ()
    max_epochs: int = 100
    lr: float = 0.05
    batch_size: int | str = "auto"
    weight_decay: float = 0.0
    warmup: float = 0.0
    dropout: float = 0.0
    n_iter_no_change: int = 10

    net_: NumericNet = field(init=False)
    classes_: np.ndarray = field(init=False)
    multilabel_: bool = field(init=False)
    positive_: int = field(init=False)
    n_features_in_: int = field(init=False)
    batch_size_: int = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Data, y: Data, sample_weight: ArrayLike | None = None) -> Self:
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
        return self._fit(X, y, sample_weight)

    # ---- the steps

    def _make_net(
        self, criterion: nn.Module, seed: int, callbacks: list[Any] | None = None
    ) -> NumericNet:
        settings = self._net_settings(
            criterion, seed, callbacks, padding=Padding(0), precision="fp32", max_grad_norm=None,
            batch_size=self.batch_size_,
        )  # fmt: skip
        # From here on only the net holds the module.
        return NumericNet(self.__dict__.pop("module_"), **settings)

    def _inference_params(self) -> dict[str, Any]:
        # Nothing here depends on the size of a batch; the net needs a number.
        return {**super()._inference_params(), "batch_size": self.batch_size_}

    def _outputs_of(self, sources: Any, encoded: NumericDataset) -> np.ndarray:
        kind = str(next(self.net_.module_.parameters()).dtype).removeprefix("torch.")
        return np.asarray(self.net_.logits(NumericDataset(encoded.X.astype(kind, copy=False))))

    def _logits(self, X: Data) -> np.ndarray:
        self._check_fitted()
        rows = checked_rows(self, X, [np.float64, np.float32], reset=False)
        return self._outputs_of(rows, NumericDataset(rows))
