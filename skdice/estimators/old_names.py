"""Parameters by the names of other libraries, and those that earlier versions saved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from sklearn.base import BaseEstimator

# What takes the place of a parameter.
PARAMETERS = {
    "learning_rate": "did you mean lr?",
    "num_train_epochs": "did you mean max_epochs?",
    "epochs": "did you mean max_epochs?",
    "per_device_train_batch_size": "did you mean batch_size?",
    "model_name": "did you mean backbone?",
    "class_weight": "give it to the loss, as loss=CrossEntropyLoss(class_weight=...)",
}
# What takes the place of a value in a folder that an earlier version saved.
VALUES: dict[str, dict[str, str | None]] = {
    "frozen": {"none": None},
    "on_misaligned": {"fix": "expand", "error": "raise"},
}
# What such folders cannot be read with.
GONE = {"label_all_subwords": True, "window_pooling": "logsumexp", "unlabeled": "unknown"}
# Parameters of such folders that changed no prediction: of estimators, and of losses.
NEEDLESS = (
    *("resume", "language", "overlapping", "unlabeled", "label_all_subwords"),
    *("end_loss", "match_loss", "start_weight", "end_weight", "match_weight"),
)
OF_OLD_LOSSES = ("ema_decay", "absent", "all_ranks", "ohem_ratio")


class OldNames(BaseEstimator):
    """Refuses parameters by the names that others have for them, and says what to give."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """An object whose constructor has not run yet; the signature is that of ``__init__``."""
        cls._refuse_old_names(params)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        self._refuse_old_names(params)
        return super().set_params(**params)

    @classmethod
    def _refuse_old_names(cls, names: Iterable[str]) -> None:
        for name in names:
            if name in PARAMETERS and name not in cls._get_param_names():
                raise TypeError(f"{cls.__name__} has no {name!r}: {PARAMETERS[name]}")


def as_now(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that an earlier version saved, by the names and values of this one."""
    params = dict(params)
    for name, value in GONE.items():
        if params.get(name) == value:
            raise ValueError(f"it was trained with {name}={value!r}, which is gone")
    for name in NEEDLESS:
        params.pop(name, None)
    if "misaligned" in params:
        params["on_misaligned"] = params.pop("misaligned")
    for name in VALUES.keys() & params.keys():
        value = params[name]
        if isinstance(value, str):
            params[name] = VALUES[name].get(value, value)
    return params
