"""The private names of other libraries that skdice uses, each with the reason.

No other module imports a name with a leading underscore from another library. So if an update
moves one, only this file changes.
"""

from contextlib import suppress
from inspect import signature
from typing import Any

# What searches have in common, such as `predict` of the best estimator, has no public name.
from sklearn.model_selection._search import BaseSearchCV

# A pipeline of ours names its steps as `make_pipeline` does.
# Indexing that works for lists, arrays, sparse matrices, pandas and polars alike.
from sklearn.utils import _safe_indexing as safe_indexing

# `_parameter_constraints` is documented for third parties, and these are its vocabulary.
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)

# Routing is public; whether a user has switched it on is not.
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled

# Names of columns, and parameters of `fit` cut to a fold, as in scikit-learn's own estimators.
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_method_params as check_method_params

__all__ = [
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "RealNotInt",
    "StrOptions",
    "accepts_sample_weight",
    "attention_of",
    "check_feature_names",
    "check_method_params",
    "end_allocating",
    "expect_eager_steps",
    "expect_skipped_steps",
    "get_sampler_tags",
    "routing_enabled",
    "safe_indexing",
    "validate_parameter_constraints",
]


def get_sampler_tags(sampler: Any) -> Any:
    """Samplers carry tags of imbalanced-learn's own, which scikit-learn's `get_tags` drops."""
    from imblearn.utils._tags import get_tags  # not at the top: metrics do without it

    return get_tags(sampler)


def attention_of(encoder: Any) -> str | None:
    """The attention of a model of transformers, which has a public setter and no getter."""
    return getattr(getattr(encoder, "config", None), "_attn_implementation", None)


def end_allocating(device: int, pool: Any) -> None:
    """Let a GPU's memory go on as before a recording that failed, which torch does not."""
    import torch

    with suppress(RuntimeError, AttributeError):  # it did
        torch._C._cuda_endAllocateToPool(device, pool)


def expect_eager_steps(optimizer: Any) -> None:
    """Let an optimiser that will be captured not warn of steps before that."""
    optimizer._warned_capturable_if_run_uncaptured = True


def expect_skipped_steps(optimizer: Any) -> None:
    """Let a schedule not warn where the first update is skipped."""
    optimizer._opt_called = True


def accepts_sample_weight(scorer: Any) -> bool:
    """Tell whether a scorer takes ``sample_weight``; scikit-learn's all have one signature."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters
