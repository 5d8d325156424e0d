"""Entities by reading comprehension: a query for each type, read together with the sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from skdice._types import Data, Encoder, Model, Rows, Weights
from skdice.engine.devices import to_device
from skdice.engine.encoded import Update
from skdice.engine.fit_plan import Examples, Mode, check_known, fresh_loss
from skdice.engine.module import EncoderModule
from skdice.engine.span_heads import EncoderWithSpanHeads
from skdice.inputs.rows import check_weights
from skdice.inputs.sentences import as_entities, as_sentences
from skdice.losses.base import check_classes
from skdice.losses.span_ends import HeadsLoss
from skdice.metrics import span_precision_recall_fscore_support
from skdice.tags.schemes import to_tags
from skdice.tags.spans import ScoredSpan, Span, flat_spans
from skdice.tasks._base import Blocks, Task
from skdice.text.encoding import Windows
from skdice.text.long_texts import Cuts
from skdice.text.queries import check_queries
from skdice.text.question_windows import QueryWindow, encode_queries

# A span, and the geometric mean and the minimum of its three probabilities.
Candidate = tuple[Span, float, float]


class MRC(Task):
    """Spans of each type: where they start, where they end, and which pairs match."""

    name = "mrc-ner"
    rows = "tokens with entities by query"
    estimator = "DiceMRCTagger"
    head: ClassVar[str | None] = None
    judged = "spans"
    judged_by = "predict_spans"
    has_classes = False

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return sentences as lists of tokens."""
        return as_sentences(X, may_be_empty=True)

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return sentences and their spans."""
        sentences = as_sentences(X)
        return sentences, as_entities(y, sentences)[0]

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return sentences and spans to learn from, and set the scheme of their tags."""
        sentences = as_sentences(X)
        spans, model.scheme_ = as_entities(y, sentences)
        return Examples(sentences, spans, check_weights(sample_weight, len(sentences)))

    # ---- training

    def check_params(self, model: Model, mode: Mode) -> None:
        """Refuse a loss whose factors are not those of two classes."""
        check_classes(model.loss, (0, 1))

    def learn(
        self, model: Model, data: Examples, held: Examples | None, mode: Mode, classes: Rows | None
    ) -> tuple[Examples, Examples | None]:
        """Set a query for each type."""
        types = sorted({kind for row in data.targets for kind, _, _ in row})
        if not types:
            raise ValueError("y holds no entity at all: a tagger needs some to learn from")
        if held is not None:
            check_known(types, (kind for row in held.targets for kind, _, _ in row), "types")
        model.queries_ = check_queries(model.queries, types)
        return data, held

    def prepare_training(self, model: Model, data: Examples, held: Examples | None) -> None:
        """Set the longest span, which is that of training, and the threshold."""
        longest = max((end - start for row in data.targets for _, start, end in row), default=1)
        model.max_span_length_ = model.max_span_length or longest
        model.threshold_ = float(model.threshold)

    def named(self, model: Model) -> Callable[[Any, Any], Any]:
        """Return what tells whether a candidate span is a match."""
        return _matches

    def nothing_found(self, model: Model, seen: np.ndarray) -> str | None:
        """Return what a model does that matched no span."""
        return None if seen.any() else "finds no entity"

    def n_outputs(self, model: Model) -> int:
        """Return 3, for start, end and answerable; matches have a head of their own."""
        return 3

    def assemble(self, model: Model, encoder: Encoder, n_outputs: int) -> EncoderModule:
        """Return the encoder with the heads of starts, ends, matches and answerable."""
        return EncoderWithSpanHeads(encoder, dropout=model.dropout)

    def encode(self, model: Model, sources: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return windows of the sentences, each with a query."""
        return encode_queries(
            model.tokenizer_,
            sources,
            list(model.queries_.values()),
            model.max_length_,
            stride=model.stride,
            longest=model.max_span_length_,
        )

    def target(self, model: Model, window: QueryWindow, of_row: list[Span]) -> np.ndarray:
        """Return for each output 0 or 1 and its head: 0 start, 1 end, 2 match, 3 answerable."""
        n, kind = window.n_words, list(model.queries_)[window.query]
        first = int(window.words[1]) if n else 0
        inside = [
            (start - first, end - 1 - first)
            for label, start, end in of_row
            if label == kind and first <= start and end <= first + n
        ]
        starts, ends = np.zeros(n), np.zeros(n)
        starts[[s for s, _ in inside]] = 1
        ends[[e for _, e in inside]] = 1
        # Pairs are numbered by position, where word 0 is at 1.
        wanted = {(s + 1, e + 1) for s, e in inside}
        matches = np.array([tuple(pair) in wanted for pair in window.pairs.tolist()], dtype=float)
        values = np.concatenate([starts, ends, [float(bool(inside))], matches])
        heads = np.repeat([0, 1, 3, 2], [n, n, 1, len(matches)])
        return np.stack([values, heads], axis=1).astype(np.float32)

    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the losses of the four heads, each with its counts."""
        table, share = dataset.flat_targets()
        losses = []
        for head in range(4):
            of_head = table[:, 1] == head
            counts = np.bincount(table[of_head, 0].astype(int), share[of_head], minlength=2)
            losses.append(fresh_loss(model.loss).prepare(counts))
        return HeadsLoss(losses, [1.0, 1.0, 1.0, model.answerable_weight])

    # ---- predictions

    def row_outputs(
        self, model: Model, rows: Iterable[Any], threshold: float | None = None
    ) -> list[list[Candidate]]:
        """Return the spans of each sentence above a threshold in one of its windows."""
        above = model.threshold_ if threshold is None else threshold
        return [
            [s for w, logits in windows for s in _spans_above(model, w, expit(logits), above)]
            for windows in rows
        ]

    def tagged(
        self, model: Model, sources: list[Any], outputs: Iterable[list[Candidate]]
    ) -> list[tuple[list[Any], list[ScoredSpan]]]:
        """Return what `predict` gives for each sentence, and its spans with their scores."""
        scored = self.spans(model, sources, outputs)
        rows: list[list[Any]] = [[span[:3] for span in spans] for spans in scored]
        if model.scheme_ is not None:
            pairs = zip(rows, sources, strict=True)
            rows = [to_tags(spans, len(sentence), model.scheme_) for spans, sentence in pairs]
        return list(zip(rows, scored, strict=True))

    def decide(
        self, model: Model, sources: list[Any], outputs: Iterable[list[Candidate]]
    ) -> list[list[Any]]:
        """Return tags without overlaps, or spans if training had spans."""
        return [row for row, _ in self.tagged(model, sources, outputs)]

    def spans(
        self, model: Model, sources: list[Any], outputs: Iterable[list[Candidate]]
    ) -> list[list[ScoredSpan]]:
        """Return distinct spans with their scores; without overlaps if trained on tags."""
        rows = []
        for candidates in outputs:
            best: dict[Span, float] = {}
            for span, score, _ in candidates:
                best[span] = max(best.get(span, 0.0), score)
            scored = [(*span, score) for span, score in best.items()]
            if model.scheme_ is None:
                scored.sort(key=lambda s: (s[1], -s[2], s[0]))
            else:  # the likeliest of those that overlap
                scored = flat_spans(sorted(scored, key=lambda s: (-s[3], s[1], s[2], s[0])))
            rows.append([*map(ScoredSpan._make, scored)])
        return rows

    # ---- scores

    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return micro precision, recall and F1 of spans."""
        found = [[span[:3] for span in row] for row in predicted]
        scores = span_precision_recall_fscore_support(true, found, average="micro")[:3]
        return dict(zip(("precision", "recall", "f1"), scores, strict=True))

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 of spans, whatever `predict` gives."""
        found = (row for block in blocks for row in self.spans(model, *block))
        return self.rate(model, held.targets, found)["f1"]

    def paired_spans(
        self, model: Model, inputs: list[Any], true: Rows, predicted: Rows
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true and predicted spans as (type, start, end) for each row."""
        return list(true), as_entities(predicted, inputs)[0]

    def measure(self, model: Model) -> str:
        """Return what `rate` counts."""
        return "spans, micro"


def _spans_above(
    model: Model, window: QueryWindow, p: np.ndarray, threshold: float
) -> list[Candidate]:
    """Spans of one window above a threshold, from the probabilities of its outputs."""
    n, kind = window.n_words, list(model.queries_)[window.query]
    starts, ends, answerable, match = np.split(p, [n, 2 * n, 2 * n + 1])
    if model.answerable_weight and answerable[0] <= 0.5:
        return []
    first, last = window.pairs[:, 0] - 1, window.pairs[:, 1] - 1
    parts = np.stack([starts[first], ends[last], match])
    least = parts.min(axis=0)
    chosen = np.flatnonzero(least > threshold)
    scores = np.exp(np.log(parts[:, chosen]).mean(axis=0))
    words = window.words[1:]
    return [
        ((kind, int(words[first[i]]), int(words[last[i]]) + 1), float(score), float(least[i]))
        for i, score in zip(chosen, scores, strict=True)
    ]


def _matches(logits: torch.Tensor, batch: Update) -> torch.Tensor:
    assert batch.target is not None
    heads = to_device(batch.target, str(logits.device))[:, 1]
    return ((logits > 0) & (heads == 2)).unsqueeze(-1)
