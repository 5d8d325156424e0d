"""imbalanced-learn's pipeline, which refuses SMOTE in front of raw text.

Without it the refusal is "Expected 2D array, got 1D array", which names no way out.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from imblearn.pipeline import Pipeline as _Pipeline

from skdice._checks import KINDS, shown
from skdice._compat import get_sampler_tags, name_estimators
from skdice._types import Data
from skdice.inputs.rows import as_row_list, plain_values


class Pipeline(_Pipeline):
    """imbalanced-learn's `Pipeline`, which checks its samplers before any work.

    A sampler that computes with rows, such as SMOTE, cannot read text: it needs a transformer,
    such as `TransformerFeatures`, before it. Everything else is as in imbalanced-learn.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        As in imbalanced-learn.

    Examples
    --------
    >>> from imblearn.over_sampling import SMOTE
    >>> from skdice import DiceSequenceClassifier
    >>> from skdice.resampling import make_pipeline
    >>> make_pipeline(SMOTE(), DiceSequenceClassifier()).fit(["a", "b"], [0, 1])
    Traceback (most recent call last):
    ...
    ValueError: SMOTE() computes with numbers, but X holds text here: put TransformerFeatures()...
    """

    def fit(self, X: Data, y: Data | None = None, **params: Any) -> Self:
        """Check the samplers, then fit as imbalanced-learn does."""
        self._check_samplers(X)
        return super().fit(X, y, **params)

    def _check_samplers(self, X: Any) -> None:
        steps = as_row_list("steps", self.steps)
        if not steps or not all(map(_is_step, steps)):
            raise TypeError(f"steps={shown(self.steps)} must be a list of (name, estimator)")
        if isinstance(self.memory, str) and not KINDS["Path"].is_satisfied_by(self.memory):
            raise ValueError(f"memory={shown(self.memory)} must be the path of a folder")
        value = plain_values(X)
        while np.ndim(value) if isinstance(value, np.ndarray) else isinstance(value, (list, tuple)):
            if not len(value):
                return
            value = value[0]
        if not isinstance(value, str):
            return
        for _, step in self.steps:
            if hasattr(step, "transform"):
                return
            # Samplers by others, and FunctionSampler(validate=False), may well read text.
            known = type(step).__module__.startswith("imblearn.") and getattr(
                step, "validate", True
            )
            samples = hasattr(step, "fit_resample")
            if known and samples and not get_sampler_tags(step).input_tags.string:
                raise ValueError(
                    f"{step!r} computes with numbers, but X holds text here: put "
                    "TransformerFeatures() before it, or use a sampler that only draws rows, such "
                    "as TextOverSampler()"
                )


def _is_step(step: Any) -> bool:
    if not isinstance(step, (tuple, list)) or len(step) != 2 or not isinstance(step[0], str):
        return False
    return (
        step[1] is None
        or isinstance(step[1], str)
        or bool({"fit", "fit_resample"} & set(dir(step[1])))
    )


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> Pipeline:
    """A `Pipeline` of `steps`, named by their classes.

    Parameters
    ----------
    *steps : estimators
    memory : str, joblib.Memory or None, default=None
    verbose : bool, default=False
    """
    return Pipeline(name_estimators(steps), memory=memory, verbose=verbose)
