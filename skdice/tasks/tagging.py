"""Tagging: lists of tokens in, a tag for each token out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from torch import nn

from skdice._types import Data, Model, Rows
from skdice._warn import warn
from skdice.engine.encoded import UNKNOWN
from skdice.engine.fit_plan import Examples, Mode, check_known, prepared_loss
from skdice.exceptions import DataWarning
from skdice.inputs.labels import refuse_new
from skdice.inputs.sentences import as_names, as_sentences, as_tags, read_tags
from skdice.metrics import span_precision_recall_fscore_support
from skdice.metrics.calibration import SpanScales
from skdice.tags.decoding import decode
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import (
    check_tags,
    get_spans,
    infer_scheme,
    refuse_strays,
    split_tag,
)
from skdice.tags.spans import ScoredSpan
from skdice.tasks._base import Task
from skdice.text.encoding import Ragged, Windows, encode_sentences
from skdice.text.long_texts import Cuts


class Tagging(Task):
    """Tags of tokens: entities in any scheme, or parts of speech."""

    name = "tagging"
    rows = "tagged tokens"
    estimator = "DiceTokenClassifier"
    head: ClassVar[str | None] = "TokenClassification"
    judged = "spans"
    tuned_by = "BiasTunedTagger"

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return sentences as lists of tokens."""
        return as_sentences(X, may_be_empty=True)

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return sentences and their tags."""
        sentences = as_sentences(X)
        return sentences, as_tags(y, sentences)

    def n_words(self, sources: list[Any]) -> Iterable[int]:
        """Return the number of words of each row."""
        return map(len, sources)

    def true_tags(self, model: Model, inputs: list[Any], targets: list[Any]) -> list[Any]:
        """Return the tags of the words of checked rows."""
        return targets

    # ---- training

    def learn(
        self, model: Model, data: Examples, held: Examples | None, mode: Mode, classes: Rows | None
    ) -> tuple[Examples, Examples | None]:
        """Set tags and scheme, or check the tags against those of the last fit."""
        self._learn_tags(model, data.targets, mode, classes)
        if held is not None:
            self._check_held_out(model, held.targets)
        return data, held

    def nothing_found(self, model: Model, seen: np.ndarray) -> str | None:
        """Return what a model does that named no tag of a span, or one tag only."""
        names = model.outputs_[seen].tolist()
        if model.scheme_ != "plain" and names == ["O"]:
            return "finds no span"
        return super().nothing_found(model, seen)

    def _learn_tags(
        self, model: Model, tags: list[list[Any]], mode: Mode, more: Rows | None
    ) -> None:
        named = [] if more is None else as_names("classes", more)
        classes = sorted({tag for row in [*tags, named] for tag in row} - {None})
        if mode != "fresh":
            refuse_new(classes, model.outputs_.tolist())
            if model.scheme != "auto":
                check_tags(tags, model.scheme_)
            return
        if len(classes) < 2:
            what = f"one class only ({classes[0]!r})" if classes else "no tag at all"
            raise ValueError(f"y holds {what}: a tagger needs tokens of 2 classes or more")
        auto = model.scheme == "auto"
        scheme = infer_scheme(tags, named) if auto else model.scheme
        check_tags(tags, scheme, refuse=not auto)
        setattr(model, self.outputs, np.array(classes))
        model.scheme_ = scheme

    def _check_held_out(self, model: Model, rows: list[list[Any]]) -> None:
        """Refuse validation tags if training holds none of their types."""
        if model.scheme_ != "plain":
            refuse_strays(rows, "y_val")
        known, held = (
            {self.type_of(model, tag) for tag in tags if tag not in ("O", None)}
            for tags in (model.outputs_.tolist(), chain(*rows))
        )
        check_known(known, held, "tags" if model.scheme_ == "plain" else "types")

    def type_of(self, model: Model, tag: str) -> str:
        """Return the entity type of a tag; in the plain scheme the tag itself."""
        return tag if model.scheme_ == "plain" else split_tag(tag)[1]

    def prepare_training(self, model: Model, data: Examples, held: Examples | None) -> None:
        """Warn of validation sentences without an entity."""
        if held is not None and not any(t not in ("O", None) for row in held.targets for t in row):
            warn("the validation sentences hold no entity: their F1 is 0", DataWarning)

    def n_outputs(self, model: Model) -> int:
        """Return the number of tags."""
        return len(model.outputs_)

    def encode(self, model: Model, sources: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return windows in which every token is predicted once."""
        return encode_sentences(model.tokenizer_, sources, model.max_length_, stride=model.stride)

    def targets(self, model: Model, windows: Windows[Any], targets: list[list[Any]]) -> Ragged:
        """Return the indices of the tags of each window, in an integer type that holds them."""
        index = {tag: i for i, tag in enumerate(model.outputs_.tolist())}
        index[None] = UNKNOWN
        words, kind = windows.columns["words"], np.min_scalar_type(-max(len(index), -UNKNOWN))
        rows = zip(windows.rows.tolist(), words, strict=True)
        of_words = (index[targets[row][word]] for row, kept in rows for word in kept.tolist())
        return Ragged(np.fromiter(of_words, kind, len(words.values)), words.sizes)

    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the loss with the counts of the tags; ``O`` is the background."""
        targets, weights = dataset.flat_targets(drawn)
        known, names = targets != UNKNOWN, model.outputs_.tolist()
        counts = np.bincount(targets[known], weights[known], minlength=len(names))
        background = names.index("O") if "O" in names else None
        of_loss = {"background": background, "classes": model.outputs_}
        return prepared_loss(model, counts, counts.sum(), **of_loss)

    # ---- predictions; `outputs` are tables of log-probabilities

    def row_outputs(self, model: Model, rows: Iterable[Any]) -> list[np.ndarray]:
        """Return log-probabilities of shape (n_tokens, n_classes) for each row."""
        rows = list(rows)  # all at once, for a call of numpy's costs as much as a sentence
        counts = [int(row[-1][0].words[-1]) + 1 if row else 0 for row in rows]
        ends = np.cumsum(counts, dtype=np.int64)
        table = np.empty((sum(counts), len(model.outputs_)))
        found = [(window.words, z, i) for i, row in enumerate(rows) for window, z in row]
        if found:
            of_windows, logits, places = zip(*found, strict=True)
            sizes = np.array([len(words) for words in of_windows])
            starts = np.repeat((ends - counts)[list(places)], sizes)
            words, log_p = np.concatenate(of_windows) + starts, np.concatenate(logits)
            table[words] = log_softmax(log_p, axis=-1)
        return np.split(table, ends[:-1]) if rows else []

    def decode(self, model: Model, tables: Iterable[np.ndarray]) -> list[list[str]]:
        """Return the tags of each sentence."""
        names, constrained = model.outputs_.tolist(), getattr(model, "constrained", False)
        return decode(tables, names, model.scheme_, constrained=constrained)

    def with_spans(
        self,
        model: Model,
        tables: list[np.ndarray],
        rows: list[list[str]],
        scales: SpanScales | None = None,
    ) -> list[tuple[list[str], list[ScoredSpan]]]:
        """Return tags with their spans, scored by log-probabilities; `scales` calibrate them."""
        posterior = SpanPosterior(model.outputs_.tolist(), model.scheme_)
        scored = []
        for table, tags in zip(tables, rows, strict=True):
            spans = get_spans(tags, model.scheme_)
            scores = posterior(table, spans).tolist()
            row = [ScoredSpan(*s, p) for s, p in zip(spans, scores, strict=True)]
            scored.append(row if scales is None else scales(row))
        return list(zip(rows, scored, strict=True))

    def tagged(
        self, model: Model, sources: list[Any], outputs: Iterable[np.ndarray]
    ) -> list[tuple[list[str], list[ScoredSpan]]]:
        """Return the tags of each sentence with their spans, by position in tokens."""
        tables = list(outputs)
        scales = getattr(model, "span_scales_", None)
        return self.with_spans(model, tables, self.decode(model, tables), scales)

    def decide(
        self, model: Model, sources: list[Any], outputs: Iterable[np.ndarray]
    ) -> list[list[Any]]:
        """Return the tags of each sentence."""
        return self.decode(model, outputs)

    def spans(
        self, model: Model, sources: list[Any], outputs: Iterable[np.ndarray]
    ) -> list[list[ScoredSpan]]:
        """Return what `predict_spans` gives for each row."""
        return [spans for _, spans in self.tagged(model, sources, outputs)]

    # ---- scores

    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return micro precision, recall and F1 of spans; of tokens for plain tags."""
        *values, _ = span_precision_recall_fscore_support(
            true, list(predicted), average="micro", scheme=model.scheme_
        )
        return dict(zip(("precision", "recall", "f1"), values, strict=True))

    def cost(self, model: Model, inputs: Data, true: Rows, predicted: Rows) -> dict[str, float]:
        """Return the mean cost of a row by its false, missed and right spans."""
        if self.judged != "spans" or "cost" not in getattr(model, "tuned_for_", {}):
            return {}
        (_, alarm), (missed, hit) = model.tuned_for_["cost"]
        pairs = self.paired_spans(model, self.inputs(inputs), true, predicted)
        rows = [*zip(*pairs, strict=True)]
        hits = [len({*right} & {*found}) for right, found in rows]
        costs = [
            alarm * (len(found) - n) + missed * (len(right) - n) + hit * n
            for (right, found), n in zip(rows, hits, strict=True)
        ]
        return {"cost": float(np.mean(costs))}

    def measure(self, model: Model) -> str:
        """Return what `rate` counts."""
        return "tokens, micro" if model.scheme_ == "plain" else "spans, micro"

    def paired_spans(
        self, model: Model, inputs: list[Any], true: Rows, predicted: Rows
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true and predicted spans as (type, start, end) for each row."""
        predicted = as_tags(predicted, inputs)
        *tags, scheme = read_tags(true, predicted, model.scheme_)
        found, of_truth = ([get_spans(row, scheme) for row in rows] for rows in reversed(tags))
        return of_truth, found
