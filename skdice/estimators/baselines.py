"""Baselines to try before a transformer: n-grams for texts, a random field for tags."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import FeatureUnion
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdice._compat import HasMethods, Interval, StrOptions
from skdice._fitting import all_or_nothing, check_params
from skdice._types import ArrayLike, Data, Rows, Sampler, Weights
from skdice.engine.fit_plan import draw_epochs, draw_seed
from skdice.estimators.evaluation import ClassScores, SpanScores
from skdice.inputs.labels import places_of
from skdice.inputs.rows import object_array
from skdice.inputs.sentences import as_sentences
from skdice.inputs.texts import as_texts, check_width
from skdice.metrics.calibration import log
from skdice.metrics.decisions.positive import positive_class
from skdice.tags.schemes import SCHEMES
from skdice.tasks.tagging import Tagging


class _Baseline(BaseEstimator):
    """Base of the baselines, which read text."""

    sampler: Sampler | None
    random_state: int | np.random.RandomState | None

    def _rows(self, y: Rows) -> np.ndarray:
        """The rows to fit to."""
        drawn = draw_epochs(self.sampler, y, draw_seed(self.random_state), [1])
        return np.arange(len(y)) if drawn is None else drawn[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class TfidfClassifier(ClassScores, ClassifierMixin, _Baseline):
    """Classify texts or pairs by their n-grams: a baseline that is fitted in seconds.

    TF-IDF of n-grams (one and two words; two to four characters of a word) goes into a logistic
    regression with balanced classes. Its strength `C` is chosen on inner folds by F1: of the
    positive class of two, macro for more. A pair has the n-grams of both texts, what they share
    (the smaller value), how they differ (the absolute difference), and their cosine similarity. Of
    1,000 rows or more, n-grams that only one text holds are left out.

    Parameters
    ----------
    Cs : list of float, default=(1, 10, 100)
        Inverse strengths of the regularisation to choose from. A single one is not searched.
    cv : int, default=3
        Inner folds; fewer where a class has fewer rows. With a class of one row there are none, and
        the second of `Cs` is taken.
    pos_label : label or None, default=None
        The positive class of two. None is 1 of {0, 1} or {-1, 1}, and otherwise the rarer one.
    sampler : imbalanced-learn sampler or None, default=None
        Resamples the rows, once `C` is chosen: `RandomOverSampler` or one of `skdice.resampling`.
    random_state : int, RandomState or None, default=None
        Seed of the inner folds and the sampler.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    positive_ : int
        Index of the positive class of two.
    n_features_in_ : int
        1 for texts, 2 for pairs.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame; other columns are refused from then on.
    vectorizer_ : FeatureUnion
    model_ : LogisticRegression
        Its class k is ``classes_[k]``.

    Examples
    --------
    >>> from skdice import TfidfClassifier
    >>> X = ["win money now", "free prize", "lunch today?", "see you there"] * 3
    >>> model = TfidfClassifier(random_state=0).fit(X, ["spam", "spam", "ham", "ham"] * 3)
    >>> model.predict(["free money", "lunch there?"]).tolist()
    ['spam', 'ham']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "Cs": [tuple, list],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "pos_label": "no_validation",
        "sampler": [HasMethods("fit_resample"), None],
        "random_state": ["random_state"],
    }

    Cs: tuple[float, ...] = (1, 10, 100)
    cv: int = 3
    pos_label: Hashable | None = None
    sampler: Sampler | None = None
    random_state: int | np.random.RandomState | None = None

    n_features_in_: int = field(init=False)

    @all_or_nothing
    def fit(self, X: Rows, y: Data, sample_weight: ArrayLike | None = None) -> Self:
        """Count n-grams, choose `C`, and fit.

        Parameters
        ----------
        X : list, array, Series or frame of texts, or of pairs of texts
        y : array of shape (n,)
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data.
        """
        check_params(self)
        self.task.check_columns(self, X, reset=True)
        data = self.task.examples(self, X, y, sample_weight)
        if data.weights is not None:  # a row of weight 0 is one that is not there
            data = data.take(np.flatnonzero(data.weights))
        data, _ = self.task.learn(self, data, None, "fresh", None)
        texts, labels, weights = data.inputs, data.targets, data.weights
        if labels.ndim == 2:
            raise ValueError(
                f"y has shape {labels.shape}, and a TfidfClassifier gives one label a row: fit one "
                "for each column, or use DiceSequenceClassifier"
            )
        target = places_of(labels, self.classes_)
        counts = np.bincount(target)
        if len(counts) == 2:
            self.positive_ = positive_class(self.classes_, counts, self.pos_label)
        self.vectorizer_: Any = self._counted(texts)
        table, rows = self._table(texts), self._rows(labels)
        self.model_: LogisticRegression = LogisticRegression(
            class_weight="balanced", max_iter=1000, C=self.Cs[:2][-1]
        )
        n_folds = min(self.cv, int(counts.min()))
        if len(self.Cs) > 1 and n_folds > 1:
            self.model_.set_params(**self._best(table, target, weights, n_folds))
        weights = None if weights is None else weights[rows]
        self.model_.fit(table[rows], target[rows], sample_weight=weights)
        return self

    def _counted(self, texts: list[Any]) -> FeatureUnion:
        """The n-grams of words and of characters, as far as these texts have any."""
        least = 2 if len(texts) >= 1000 else 1
        make = partial(TfidfVectorizer, sublinear_tf=True, min_df=least, dtype=np.float32)
        words = make(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]+")
        characters = make(ngram_range=(2, 4), analyzer="char_wb")
        flat = texts if isinstance(texts[0], str) else [*chain.from_iterable(texts)]
        kinds = [("words", words), ("characters", characters)]
        kinds = [kind for kind in kinds if _counts(kind[1], flat)]
        if not kinds:
            raise ValueError("no text of X has an n-gram: give shorter ones, or other texts")
        return FeatureUnion(kinds)

    def _best(
        self, table: Data, target: np.ndarray, weights: Weights, n_folds: int
    ) -> dict[str, Any]:
        """The `C` with the best F1 on inner folds."""
        of_which: dict[str, Any] = {"average": "macro"}
        if len(self.classes_) == 2:
            of_which = {"pos_label": self.positive_}
        scorer = make_scorer(f1_score, zero_division=0.0, **of_which)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=draw_seed(self.random_state))
        search = GridSearchCV(
            self.model_, {"C": list(self.Cs)}, scoring=scorer, cv=folds, refit=False
        )
        with config_context(enable_metadata_routing=False):  # the weights are for `fit` alone
            search.fit(table, target, sample_weight=weights)
        best: dict[str, Any] = search.best_params_
        return best

    def predict(self, X: Rows) -> np.ndarray:
        """Labels of shape (n,)."""
        chosen = self._of_rows(X, "predict")  # refuses to predict before `fit`
        return self.classes_[chosen]

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities of shape (n, n_classes), in the order of `classes_`."""
        return self._of_rows(X, "predict_proba")

    def decision_function(self, X: Rows) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        return self._of_rows(X, "decision_function")

    def _of_rows(self, X: Rows, method: str) -> np.ndarray:
        check_is_fitted(self)
        self.task.check_columns(self, X)
        texts = as_texts(X, may_be_empty=True)
        check_width(texts, self.n_features_in_, self)
        # scikit-learn refuses to predict no row at all.
        table = self._table(texts or ["" if self.n_features_in_ == 1 else ("", "")])
        values: np.ndarray = getattr(self.model_, method)(table)
        return values[: len(texts)]

    def _table(self, texts: list[Any]) -> Any:
        if isinstance(texts[0], str):
            return self.vectorizer_.transform(texts)
        a, b = (self.vectorizer_.transform(side) for side in zip(*texts, strict=True))
        similarity = sparse.csr_matrix(a.multiply(b).sum(axis=1))
        return sparse.hstack([a, b, a.minimum(b), abs(a - b), similarity], format="csr")


def _counts(vectorizer: TfidfVectorizer, texts: list[str]) -> bool:
    """Fit, and say whether there are n-grams: none, if each is in one text only."""
    try:
        vectorizer.fit(texts)
    except ValueError as error:
        if re.search("empty vocabulary|no terms remain", str(error)):
            return False
        raise
    return True


def crfsuite() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import pycrfsuite
    except ImportError as error:
        raise ImportError("a CRFTagger needs python-crfsuite: pip install 'skdice[crf]'") from error
    return pycrfsuite


@dataclass(kw_only=True, eq=False, repr=False)
class CRFTagger(SpanScores, _Baseline):
    """Tag tokens with a conditional random field: a baseline that is fitted in seconds.

    A linear chain over the usual features of named entity recognition: each word in lower case, its
    prefixes and suffixes of two and three characters, its shape, whether it is a title, in capitals
    or digits, and the same of its neighbours. Needs the extra ``skdice[crf]``.

    Parameters
    ----------
    c1, c2 : float, default=0.1
        Strengths of the L1 and L2 regularisation.
    max_iterations : int, default=100
        Of L-BFGS.
    scheme : {"auto", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bmes", "bilou", "plain"}, \
default="auto"
        How the tags mark spans, as in `DiceTokenClassifier`.
    sampler : imbalanced-learn sampler or None, default=None
        Resamples the sentences: `skdice.resampling.TagOverSampler` or `BackgroundUnderSampler`.
    random_state : int, RandomState or None, default=None
        Seed of the sampler; nothing else is random.

    Attributes
    ----------
    classes_ : ndarray of str, shape (n_classes,)
    scheme_ : str
    model_ : bytes
        As CRFsuite writes it to a file.

    References
    ----------
    J. Lafferty, A. McCallum, F. Pereira, "Conditional Random Fields", ICML 2001.
    N. Okazaki, "CRFsuite: a fast implementation of Conditional Random Fields", 2007.

    Examples
    --------
    >>> from skdice import CRFTagger
    >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
    >>> CRFTagger().fit(X, y).predict([["Ann", "rains"]])[0]
    ['B-PER', 'O']
    """

    task: ClassVar[Tagging] = Tagging()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "c1": [Interval(Real, 0, None, closed="left")],
        "c2": [Interval(Real, 0, None, closed="left")],
        "max_iterations": [Interval(Integral, 1, None, closed="left")],
        "scheme": [StrOptions({"auto", *SCHEMES})],
        "sampler": [HasMethods("fit_resample"), None],
        "random_state": ["random_state"],
    }

    c1: float = 0.1
    c2: float = 0.1
    max_iterations: int = 100
    scheme: str = "auto"
    sampler: Sampler | None = None
    random_state: int | np.random.RandomState | None = None

    classes_: np.ndarray = field(init=False)
    scheme_: str = field(init=False)

    @all_or_nothing
    def fit(self, X: Rows, y: Data) -> Self:
        """Fit on tagged sentences.

        Parameters
        ----------
        X : list of lists of str
            Tokens.
        y : list of lists of str or None
            One tag for each token; None for one that was not annotated, where the chain breaks.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If python-crfsuite is not installed.
        ValueError, TypeError
            For bad parameters or data.
        """
        check_params(self)
        library = crfsuite()
        self.task.check_columns(self, X, reset=True)
        data = self.task.examples(self, X, y)
        self.task.learn(self, data, None, "fresh", None)
        trainer = library.Trainer("lbfgs", verbose=False)
        trainer.set_params(
            {
                "c1": float(self.c1),
                "c2": float(self.c2),
                "max_iterations": int(self.max_iterations),
                "feature.possible_transitions": True,
            }
        )
        for i in self._rows(data.targets):
            pairs = zip(features_of(data.inputs[i]), data.targets[i], strict=True)
            for annotated, run in groupby(pairs, key=lambda pair: pair[1] is not None):
                if annotated:
                    trainer.append(*zip(*run, strict=True))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            trainer.train(str(path))
            self.model_: bytes = path.read_bytes()
        return self

    def predict(self, X: Rows) -> np.ndarray:
        """The most probable tags of each sentence, as a 1-D object array of lists."""
        sentences, tagger = self._sentences(X), self._tagger()
        return object_array([tagger.tag(features_of(row)) if row else [] for row in sentences])

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities of each tag, an array (n_tokens, n_classes) for each sentence."""
        sentences, tagger, tables = self._sentences(X), self._tagger(), []
        names = self.classes_.tolist()
        for row in sentences:
            if row:
                tagger.set(features_of(row))
            values = (tagger.marginal(name, t) for t in range(len(row)) for name in names)
            tables.append(np.fromiter(values, np.float64).reshape(len(row), len(names)))
        return object_array(tables)

    def _sentences(self, X: Rows) -> list[list[str]]:
        check_is_fitted(self)
        self.task.check_columns(self, X)
        return as_sentences(X, may_be_empty=True)

    def _spans(self, X: Rows) -> list[Any]:
        tables = [log(table) for table in self.predict_proba(X)]
        tagged = self.task.with_spans(self, tables, self.predict(X).tolist())
        return [spans for _, spans in tagged]

    @property
    def outputs_(self) -> np.ndarray:
        """The tags, in the order of the columns of `predict_proba`."""
        return self.classes_

    def _tagger(self) -> Any:
        tagger = crfsuite().Tagger()
        tagger.open_inmemory(self.model_)
        return tagger


def features_of(tokens: list[str]) -> list[list[str]]:
    """The features of each token of a sentence."""
    words = [_of_word(token) for token in tokens]
    rows = []
    for i, features in enumerate(words):
        row = ["bias", *features]
        for step in (-1, 1):
            inside = 0 <= i + step < len(words)
            near = words[i + step] if inside else ["border"]
            row += [f"{step:+d}:{feature}" for feature in near]
        rows.append(row)
    return rows


def _of_word(token: str) -> list[str]:
    lower = token.lower()
    kinds = [("X", str.isupper), ("x", str.islower), ("d", str.isdigit)]
    shape = "".join(next((k for k, holds in kinds if holds(c)), c) for c in token)
    features = [f"lower={lower}", "shape=" + re.sub(r"(?s)(.)\1+", r"\1", shape)]
    features += [f"prefix={lower[:n]}" for n in (2, 3)] + [f"suffix={lower[-n:]}" for n in (2, 3)]
    tests = [("title", str.istitle), ("upper", str.isupper), ("digits", str.isdigit)]
    return features + [name for name, holds in tests if holds(token)]
