"""DiceEntityRecognizer: raw text in, entities with their characters out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import StrOptions
from skdice._types import ArrayLike, Rows
from skdice.estimators._documented import documented
from skdice.estimators.token import DiceTokenClassifier
from skdice.inputs.answers import MISALIGNED
from skdice.inputs.texts import as_single_texts
from skdice.tags.schemes import split_tag
from skdice.tasks.entities import Entities
from skdice.text.words import split_texts


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceEntityRecognizer(DiceTokenClassifier):
    """Find entities in raw text with a fine-tuned transformer and a loss made for rare entities.

    Texts of any length are split into the words of the backbone and cut into windows that overlap.
    Words are tagged by `DiceTokenClassifier` in IOB2, and the tags give entities with their
    characters. A pipeline of transformers with ``aggregation_strategy="first"`` gives the same ones
    from the folder that `save_pretrained` writes (see `pipeline_entities`).

    Parameters
    ----------
    loss : str or Loss
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``. Words outside entities are the
        background.
    on_misaligned : {"expand", "raise", "drop"}
        What `fit` does with an entity that begins or ends inside a word, in white space or outside
        the text, or is empty: it takes all words that it touches, refuses `y`, or leaves it out.
    glued : {"tag", "skip"}
        What to do with words that follow other characters without a blank, such as ``name`` in
        ``@name``, parts of links, and ``made`` in ``ready-made``: tag them like all others, or skip
        them. Then `fit` does not train on those that are outside entities, and `predict` finds no
        entity that begins there; brackets and quotes do not count. Better for tweets, whose
        handles look like names and are none. A pipeline of transformers does not skip.
    stride : int or None
        Overlap of the windows of a long text, in subwords; None is a quarter of a window.
    constrained : bool
        Decode with Viterbi, so that an entity never begins with a tag for its inside. It finds a
        little more (see :doc:`/guide/recipe`), but a pipeline of transformers does not decode so.
    batch_size : int
        Texts, or windows of long texts, in a batch.
    sampler : imbalanced-learn sampler or None
        Resamples the texts before each epoch of `fit`, after the validation texts are set
        aside: `skdice.resampling.TagOverSampler` or `BackgroundUnderSampler`.

    Attributes
    ----------
    classes_ : ndarray of str, shape (n_types,)
        The entity types.
    tags_ : ndarray of str, shape (n_tags,)
        The tags that the words have inside.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020.

    Examples
    --------
    >>> from skdice import DiceEntityRecognizer
    >>> X = ["Ann lives in Rome.", "It rains."]
    >>> y = [[(0, 3, "PER"), (13, 17, "LOC")], []]
    >>> recognizer = DiceEntityRecognizer(max_epochs=1, random_state=0).fit(X, y)
    >>> recognizer.classes_.tolist()
    ['LOC', 'PER']
    >>> all(text[e.start : e.end] == e.text for text in X for e in recognizer.predict([text])[0])
    True
    """

    task: ClassVar[Entities] = Entities()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiceTokenClassifier._parameter_constraints,
        "on_misaligned": [StrOptions(set(MISALIGNED))],
        "glued": [StrOptions({"tag", "skip"})],
    }

    on_misaligned: str = "expand"
    glued: str = "tag"
    constrained: bool = False
    scheme: ClassVar[str] = "iob2"  # type: ignore[misc]  # not a parameter: pipelines read this one

    tags_: np.ndarray = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("tags_", "scheme_")

    @property  # type: ignore[misc]
    def classes_(self) -> np.ndarray:  # type: ignore[override]
        """The entity types, sorted."""
        return np.array(sorted({split_tag(tag)[1] for tag in self.tags_.tolist() if tag != "O"}))

    def fit(
        self,
        X: Rows,
        y: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Rows | None = None,
    ) -> Self:
        """Fine-tune on texts with their entities.

        Parameters
        ----------
        X : list of str, array of shape (n,) or (n, 1), Series or frame of one column
            Texts of any length.
        y : list of lists of entities
            For each text its entities: tuples ``(start, end, label)``, in Python's characters with
            the end exclusive, or dicts or objects with these names. Those of other tools are read
            too: ``start_offset`` (Doccano), ``entity_group`` (pipelines of transformers),
            ``start_char`` and ``label_`` (spaCy) and the like. A label of None marks a region that
            was not annotated: its words do not count in the loss, in class counts or in scores.
            The label ``"O"`` marks one that was, and holds no entity. So where only some entities
            were marked, ``[[*row, (0, len(text), None)] for text, row in zip(X, y)]``, with some
            regions of "O": without any, a recognizer would learn to find entities everywhere. Of
            entities that share words the longest is trained on.
        sample_weight : array of shape (n_texts,), default=None
        X_val, y_val : as X and y, default=None
            Validation texts: scored after each epoch, and used by `early_stopping`. Some of their
            types may be missing from `y`, but not all.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is trained; the message names text and
            entity.

        Warns
        -----
        MisalignedWarning
            If entities do not fit the words or overlap; it counts them and shows the first.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Rows) -> np.ndarray:
        """Entities of each text.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of object, shape (n_texts,)
            Each a list of `Entity`, by position: ``(start, end, label, score, text)``, where
            ``X[i][start:end] == text`` and the score is the probability of the whole entity.
        """
        return super().predict(X)

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities of the tags of each word.

        Returns
        -------
        ndarray of object, shape (n_texts,)
            Each an array of shape (n_words, n_tags): a row for each of `words`, and a column for
            each of `tags_`.
        """
        return super().predict_proba(X)

    def predict_spans(self, X: Rows) -> np.ndarray:
        """The entities of `predict` as named tuples ``(type, start, end, score)``, in characters.

        Returns
        -------
        ndarray of object, shape (n_texts,)
        """
        return super().predict_spans(X)

    def words(self, X: Rows) -> list[list[tuple[int, int]]]:
        """Start and end of each word of each text, as they are tagged.

        Words are the tokenizer's own where its vocabulary marks subwords (BERT). Otherwise
        (RoBERTa, XLM-R) texts are split at blanks, punctuation and symbols, with one character a
        word in Chinese and Japanese; a rare character may then count as several words.
        """
        self._check_fitted()
        texts = as_single_texts(X, may_be_empty=True)
        rows = split_texts(self.tokenizer_, texts)
        return [list(zip(w.starts.tolist(), w.ends.tolist(), strict=True)) for w in rows]
