"""TransformerFeatures: texts in, vectors of a frozen transformer out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdice import backbones
from skdice._compat import Interval, StrOptions, check_feature_names
from skdice._fitting import all_or_nothing, check_params
from skdice._types import Data, Rows
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine.devices import autocast_dtype, check_device, resolve_device, seeded
from skdice.engine.layouts.layout import Padding
from skdice.engine.module import check_pooling
from skdice.engine.vectors import run_encoder, vectors_of_rows
from skdice.estimators._net_estimator import OldNames
from skdice.inputs.texts import as_texts, check_width
from skdice.text.long_texts import Cuts, encode_texts


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OldNames):
    """Turn texts, or pairs of texts, into vectors of a transformer that is not trained.

    The texts u and v of a pair are encoded one by one and give ``[u, v, |u - v|, u * v]``.

    Resamplers that interpolate, such as SMOTE, and every classifier of scikit-learn can follow it
    in a pipeline. With ``Pipeline(memory="folder")`` the vectors of the same training texts are
    computed once, in this process or another, as for every transformer of scikit-learn.

    Parameters
    ----------
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    revision : str or None, default=None
        A branch, a tag or a commit of the backbone on the hub; None is its newest commit.
    pooling : {"mean", "cls", "max"}, default="mean"
        How the hidden states of a text become one vector.
    max_length : int or None, default=None
        Longest input, in subwords. None is what the backbone allows, 512 at most.
    long_texts : {"windows", "truncate"}, default="windows"
        What to do with texts above `max_length`: read them in windows as in
        `DiceSequenceClassifier`, whose vectors are averaged (with ``pooling="max"`` the maximum is
        taken), or leave out the rest. `transform` warns if something is left out.
    batch_size : int, default=64
    precision : {"auto", "fp32", "bf16"}, default="auto"
        ``"auto"`` is bf16 on CUDA (fp16 on older GPUs) and fp32 elsewhere.
    device : str, default="auto"

    Attributes
    ----------
    encoder_ : transformers.PreTrainedModel
    tokenizer_ : transformers tokenizer
    n_features_in_ : int
        1 for texts, 2 for pairs.

    References
    ----------
    N. Reimers, I. Gurevych, "Sentence-BERT", EMNLP 2019 (the features of a pair).

    Examples
    --------
    >>> from imblearn.over_sampling import SMOTE
    >>> from imblearn.pipeline import make_pipeline
    >>> from skdice import DiceClassifier, TransformerFeatures
    >>> X = ["a free prize", "see you at lunch", "free money", "the bus is late", "good night"]
    >>> y = ["spam", "ham", "spam", "ham", "ham"]
    >>> smote = SMOTE(k_neighbors=1, random_state=0)
    >>> model = make_pipeline(TransformerFeatures(), smote, DiceClassifier(loss="dsc"))
    >>> model.fit(X, y).predict(X).shape
    (5,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "backbone": [str, Path],
        "revision": [str, None],
        "pooling": [StrOptions({"mean", "cls", "max"})],
        "max_length": [Interval(Integral, 4, None, closed="left"), None],
        "long_texts": [StrOptions({"windows", "truncate"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"auto", "fp32", "bf16"})],
        "device": [str],
    }

    backbone: str = DEFAULT_BACKBONE
    revision: str | None = None
    pooling: str = "mean"
    max_length: int | None = None
    long_texts: str = "windows"
    batch_size: int = 64
    precision: str = "auto"
    device: str = "auto"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    @all_or_nothing
    def fit(self, X: Rows, y: Data | None = None) -> Self:
        """Load the backbone; nothing is learnt from the texts.

        Parameters
        ----------
        X : list of str or of pairs, array of shape (n,), (n, 1) or (n, 2), Series or frame
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or texts, before anything is loaded.
        """
        self._check_params()
        backbones.find_backbone(self.backbone, self.revision)
        texts = as_texts(X)
        tokenizer = backbones.load_tokenizer(self.backbone, self.revision)
        with seeded(0, "cpu"):
            encoder = backbones.load_encoder(self.backbone, self.revision)
        backbones.input_length(self.max_length, encoder, tokenizer)  # refuses a longer one
        check_pooling(encoder, self.pooling)
        check_feature_names(self, X, reset=True)
        self.encoder_, self.tokenizer_ = encoder.eval().requires_grad_(False), tokenizer
        self.n_features_in_: int = check_width(texts, None, self)
        return self

    def transform(self, X: Rows) -> np.ndarray:
        """Vectors of shape (n, n_features), float32.

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        ValueError
            If X holds pairs where `fit` saw texts, or the other way round.
        """
        check_is_fitted(self)
        self._check_params()
        longest = backbones.input_length(self.max_length, self.encoder_, self.tokenizer_)
        check_pooling(self.encoder_, self.pooling)
        check_feature_names(self, X, reset=False)
        texts = as_texts(X, may_be_empty=True)
        width = check_width(texts, self.n_features_in_, self)
        if not texts:
            return np.empty((0, self._n_features_out), dtype=np.float32)
        if width == 1:
            return self._vectors(texts, longest)
        n = len(texts)
        both = self._vectors([*chain.from_iterable(zip(*texts, strict=True))], longest)
        u, v = both[:n], both[n:]
        return np.hstack([u, v, np.abs(u - v), u * v])

    @property
    def _n_features_out(self) -> int:
        return {1: 1, 2: 4}[self.n_features_in_] * self.encoder_.config.hidden_size

    def __getstate__(self) -> dict[str, Any]:
        """The encoder as configuration and weights, as transformers puts closures on it."""
        state = dict(super().__getstate__())
        if "encoder_" in state:
            encoder = state["encoder_"]
            weights = {name: values.cpu() for name, values in encoder.state_dict().items()}
            state["encoder_"] = (encoder.config, weights)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the encoder from its configuration and weights."""
        super().__setstate__(state)
        if "encoder_" in state:
            from transformers import AutoModel

            config, weights = state["encoder_"]
            with seeded(0, "cpu"):
                encoder = backbones.without_pooler(AutoModel.from_config(config))
            encoder.load_state_dict(weights)
            self.encoder_ = encoder.eval().requires_grad_(False)

    # ---- the steps

    def _check_params(self) -> None:
        check_params(self)
        check_device(self.device)

    def _vectors(self, texts: list[Any], longest: int) -> np.ndarray:
        """One vector for each text; equal texts are encoded once."""
        distinct, device = list(dict.fromkeys(texts)), resolve_device(self.device)
        windows = encode_texts(self.tokenizer_, distinct, longest, self.long_texts, cuts := Cuts())
        vectors = run_encoder(
            self.encoder_,
            Padding.of(self.tokenizer_),
            windows,
            pooling=self.pooling,
            batch_size=self.batch_size,
            device=device,
            dtype=autocast_dtype(self.precision, device),
        )
        cuts.tell(longest, self.long_texts)
        table = vectors_of_rows(vectors, windows.rows, self.pooling)
        place = {text: i for i, text in enumerate(distinct)}
        return table[[place[text] for text in texts]]
