"""The rows of a comparison: a loss, perhaps with a sampler and a tuned decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from imblearn import combine, over_sampling, under_sampling
from sklearn.base import clone

from skdice import resampling
from skdice.estimators import BiasTunedClassifier, BiasTunedTagger, DiceClassifier
from skdice.losses import Loss, resolve_loss

__all__ = ["RowSpec", "parse_row"]

DECISIONS = {"tuned": "per_class", "prior": "prior"}


@dataclass
class RowSpec:
    """One row: the loss, the sampler of the training rows, and the decision."""

    label: str
    loss: str | Loss
    sampler: Any = None  # of imbalanced-learn or skdice.resampling
    decision: str | None = None  # "tuned" or "prior"

    def build(self, estimator: Any, seed: int) -> Any:
        """An unfitted model like `estimator`; a pipeline if that has no parameter ``sampler``."""
        plain = self.sampler is None and self.decision is None
        if estimator.task in ("qa", "mrc-ner") and not plain:
            raise ValueError(
                f"the row {self.label!r} is not possible: {type(estimator).__name__} takes no "
                "sampler and has no classes to tune"
            )
        model = clone(estimator).set_params(loss=clone(self.loss, safe=False), random_state=seed)
        if self.sampler is not None:
            sampler = clone(self.sampler)
            if "random_state" in sampler.get_params():
                sampler.set_params(random_state=seed)
            if "sampler" in model.get_params(deep=False):
                model.set_params(sampler=sampler)
            else:
                model = resampling.make_pipeline(sampler, model)
        if self.decision is None:
            return model
        bias = DECISIONS[self.decision]
        if estimator.task == "tagging":
            return BiasTunedTagger(model, bias=bias, cv=0.2, random_state=seed)
        # Without validation data: five folds if a fit takes seconds, else a fifth is held out.
        cv = 5 if isinstance(estimator, DiceClassifier) else 0.2
        return BiasTunedClassifier(
            model, bias=bias, cv=cv, pos_label=estimator.pos_label, random_state=seed
        )


def parse_row(row: str | Loss | RowSpec) -> RowSpec:
    """Read a row such as ``"ce"``, ``"ce + RandomOverSampler"`` or ``"dsc + tuned"``.

    Parameters
    ----------
    row : str, Loss or RowSpec
        A string starts with the name of a loss. It may add, after plus signs, the class of a
        sampler of imbalanced-learn or `skdice.resampling`; and ``tuned``, a bias for each class
        chosen on held-out data, or ``prior``, one number for all (post-hoc logit adjustment).

    Raises
    ------
    ValueError
        If a part is not known.

    Examples
    --------
    >>> from skdice.model_selection.rows import parse_row
    >>> parse_row("ce+RandomOverSampler + tuned")
    RowSpec(label='ce + RandomOverSampler + tuned', loss='ce', \
sampler=RandomOverSampler(), decision='tuned')
    """
    if isinstance(row, RowSpec):
        return row
    if not isinstance(row, str):
        resolve_loss(row)
        return RowSpec(repr(row), row)
    loss, *others = [part.strip() for part in row.split("+")]
    resolve_loss(loss)
    spec = RowSpec(" + ".join([loss, *others]), loss)
    for part in others:
        if part in DECISIONS and spec.decision is None:
            spec.decision = part
        elif part not in DECISIONS and spec.sampler is None:
            spec.sampler = _sampler(part, row)
        else:
            raise ValueError(f"the row {row!r} holds two of a kind: one sampler and one decision")
    return spec


def _sampler(name: str, row: str) -> Any:
    for module in (resampling, over_sampling, under_sampling, combine):
        found = getattr(module, name, None)
        if isinstance(found, type) and hasattr(found, "fit_resample"):
            return found()
    raise ValueError(
        f"the row {row!r} holds {name!r}, which is neither 'tuned' nor 'prior' nor a sampler of "
        "imbalanced-learn or skdice.resampling, such as RandomOverSampler or TagOverSampler"
    )
