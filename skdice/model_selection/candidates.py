"""The candidates of a comparison: a loss, perhaps with a sampler and a tuned decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from imblearn import combine, over_sampling, under_sampling
from imblearn.pipeline import make_pipeline
from sklearn.base import clone

from skdice import resampling
from skdice._checks import counted
from skdice.estimators import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceClassifier,
    TfidfClassifier,
)
from skdice.estimators.baselines import crfsuite
from skdice.estimators.before_folds import check_estimator
from skdice.estimators.evaluation import ClassScores
from skdice.inputs.labels import read_labels
from skdice.losses import LOSSES, Loss
from skdice.losses.base import resolve_loss
from skdice.model_selection.intervals import FOUND_NOTHING

BASELINES: dict[str, Any] = {"tfidf": TfidfClassifier, "crf": CRFTagger}  # in place of a loss


@dataclass
class Candidate:
    """An estimator with a name, a run for each seed, and the words that it was made from."""

    label: str
    loss: str | Loss | None = None  # None of a given estimator, and where only runs are known
    sampler: Any = None  # of imbalanced-learn or skdice.resampling
    tuned: bool = False  # whether its decision is
    model: Any = field(default=None, repr=False)  # unfitted
    digest: str = field(default="", repr=False)  # of the model
    runs: list[dict[str, Any]] = field(default_factory=list, repr=False)  # those that are done

    def values(self, name: str) -> list[float]:
        """One of the comparison's `measures`, or ``seconds``, of every run."""
        return [run[name] for run in self.runs]

    def mean(self, name: str) -> float:
        """Mean over the runs."""
        return float(np.mean(self.values(name)))

    def sd(self, name: str) -> float:
        """Standard deviation over the runs (n - 1); NaN below two."""
        return float(np.std(self.values(name), ddof=1)) if len(self.runs) > 1 else float("nan")

    @property
    def n_empty(self) -> int:
        """The runs whose fit found nothing: one class for all test rows, or no span."""
        return sum(bool(run.get(FOUND_NOTHING)) for run in self.runs)

    @property
    def empty_note(self) -> str:
        """What the table says of a row with such runs; empty without any."""
        if not self.n_empty:
            return ""
        why = "not judged" if self.is_baseline else "trained too short to be judged"
        return f"found nothing in {self.n_empty} of {counted(len(self.runs), 'fit')}: {why}"

    @property
    def is_baseline(self) -> bool:
        """True if it is no loss of the estimator, but a model of its own."""
        return isinstance(self.loss, str) and self.loss in BASELINES

    @property
    def depends_on_seed(self) -> bool:
        """True unless it is a baseline by itself, which draws inner folds at most: one run does.

        A given estimator does if it has a `random_state`.
        """
        if self.loss is None and self.model is not None:
            return any(name.endswith("random_state") for name in self.model.get_params())
        return not self.is_baseline or self.sampler is not None or self.tuned


def seeded(model: Any, seed: int) -> Any:
    """A clone of a model with a seed in every ``random_state`` that it has."""
    names = [name for name in model.get_params() if name.endswith("random_state")]
    return clone(model).set_params(**dict.fromkeys(names, seed))


def candidates_of(losses: Sequence[Any] | Mapping[str, Any], estimator: Any) -> list[Candidate]:
    """The rows of a comparison, from losses in words, as objects, or estimators by name."""
    if not len(losses):
        raise ValueError(f"losses={losses!r} must name at least one")
    named = losses if isinstance(losses, Mapping) else dict(enumerate(losses))
    found = []
    for name, given in named.items():
        if hasattr(given, "fit") and hasattr(given, "predict"):
            found.append(Candidate(str(name), model=given))
            continue
        row = parse_model(given)
        if isinstance(losses, Mapping):
            row.label = str(name)
        row.model = model_of(row, estimator)
        found.append(row)
    return found


def parse_model(model: str | Loss) -> Candidate:
    """Understand a row such as ``"ce"``, ``"ce + RandomOverSampler"`` or ``"dsc + tuned"``.

    Parameters
    ----------
    model : str or Loss
        A string starts with the name of a loss, or of a baseline: ``"tfidf"`` for texts and pairs
        (`TfidfClassifier`), ``"crf"`` for tags (`CRFTagger`). It may add, after plus signs, the
        class of a sampler of imbalanced-learn or `skdice.resampling`; and ``tuned``, a bias for
        each class chosen on held-out data.

    Raises
    ------
    ValueError
        If a part is not known.

    Examples
    --------
    >>> from skdice.model_selection.candidates import parse_model
    >>> parse_model("ce+RandomOverSampler + tuned")
    Candidate(label='ce + RandomOverSampler + tuned', loss='ce', \
sampler=RandomOverSampler(), tuned=True)
    """
    if not isinstance(model, str):
        resolve_loss(model)
        return Candidate(repr(model), model)
    loss, *others = [part.strip() for part in model.split("+")]
    if loss not in BASELINES and loss not in LOSSES:
        raise ValueError(
            f"the row {model!r} begins with {loss!r}, which is neither a loss {list(LOSSES)} nor a "
            f"baseline {list(BASELINES)}"
        )
    row = Candidate(" + ".join([loss, *others]), loss)
    for part in others:
        if part == "tuned" and not row.tuned:
            row.tuned = True
        elif part != "tuned" and row.sampler is None:
            row.sampler = _sampler(part, model)
        else:
            raise ValueError(f"the row {model!r} holds two of a kind: one sampler and one decision")
    return row


def row_of_file(label: str, digest: str, runs: list[dict[str, Any]]) -> Candidate:
    """A row of an earlier comparison, whose loss may have been an object."""
    try:
        return replace(parse_model(label), digest=digest, runs=runs)
    except ValueError:
        return Candidate(label, digest=digest, runs=runs)


def _sampler(name: str, model: str) -> Any:
    for module in (resampling, over_sampling, under_sampling, combine):
        cls = vars(module).get(name)
        if isinstance(cls, type) and hasattr(cls, "fit_resample"):
            return cls()
    raise ValueError(
        f"the row {model!r} holds {name!r}, which is neither 'tuned' nor a sampler of "
        "imbalanced-learn or skdice.resampling, such as RandomOverSampler or TagOverSampler"
    )


def model_of(row: Candidate, estimator: Any) -> Any:
    """The unfitted model of a row in words; a pipeline if it has no parameter ``sampler``."""
    if not estimator.task.has_classes and (row.sampler is not None or row.tuned):
        raise ValueError(
            f"the row {row.label!r} is not possible: {type(estimator).__name__} takes no "
            "sampler and has no classes to tune"
        )
    if row.is_baseline:
        model = _baseline(row, estimator)
    else:
        model = clone(estimator).set_params(loss=clone(row.loss, safe=False))
        check_estimator(model)
    if row.sampler is not None and hasattr(model, "sampler"):
        model.set_params(sampler=clone(row.sampler))
    elif row.sampler is not None:
        model = make_pipeline(clone(row.sampler), model)
    return _tuned(row, model, estimator) if row.tuned else model


def _baseline(row: Candidate, estimator: Any) -> Any:
    cls = BASELINES[str(row.loss)]
    if cls.task.name != estimator.task.name or isinstance(estimator, DiceClassifier):
        raise ValueError(
            f"the row {row.label!r} is not possible beside a {type(estimator).__name__}: "
            f"{row.loss!r} is the baseline of a {cls.task.estimator}"
        )
    if cls is TfidfClassifier:
        return cls(pos_label=estimator.pos_label)
    crfsuite()  # refuses a missing one before anything is trained
    return cls()


def _tuned(row: Candidate, model: Any, estimator: Any) -> Any:
    if estimator.task.tuned_by == BiasTunedTagger.__name__:
        return BiasTunedTagger(model, cv=0.2)
    # A fit on numbers takes a second.
    cv = 5 if row.is_baseline or isinstance(estimator, DiceClassifier) else 0.2
    return BiasTunedClassifier(model, pos_label=estimator.pos_label, cv=cv)


class Judged(ClassScores):
    """A fitted classifier of any library, with the scores of skdice's classifiers.

    Parameters
    ----------
    fitted : classifier with ``predict``
    estimator : estimator of skdice
        Whose task and `pos_label` the scores are of.
    y : labels that it was fitted on
    """

    def __init__(self, fitted: Any, estimator: Any, y: Any) -> None:
        labels = read_labels(y, missing=True)
        if estimator.task.judged != "labels" or labels.multilabel:
            raise TypeError(
                f"{type(fitted).__name__} has no evaluate, which only classifiers of one label a "
                "row can do without"
            )
        self.predict, self.classes_ = fitted.predict, labels.classes
        if len(self.classes_) == 2:
            self.positive_ = self.classes_.tolist().index(estimator.pos_label)
