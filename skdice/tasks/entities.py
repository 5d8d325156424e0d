"""Entities: raw text in, entities with their characters out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skdice._types import Data, Model, Rows, Weights
from skdice.engine.fit_plan import Examples, Mode
from skdice.inputs.entities import Entity, check_type, read_entities
from skdice.inputs.rows import as_row_list, check_weights
from skdice.inputs.texts import as_single_texts
from skdice.tags.spans import ScoredSpan
from skdice.tasks._base import Blocks
from skdice.tasks.tagging import Tagging
from skdice.text.alignment import REGIONS, align, tags_of_texts, typed_spans, warn_of
from skdice.text.encoding import Windows, compact, windows_of_words
from skdice.text.long_texts import Cuts
from skdice.text.words import SplitText, apart, begin_unglued, glued_words, with_words

_encode = compact(windows_of_words)


class Entities(Tagging):
    """Entities of raw texts, whose words are tagged in IOB2."""

    name = "entities"
    rows = "texts with entities"
    estimator = "DiceEntityRecognizer"
    outputs = "tags_"
    has_words = False

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return texts."""
        return as_single_texts(X, may_be_empty=True)

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return texts and their entities; a label of None is a region without annotation."""
        texts = as_single_texts(X)
        return texts, read_entities(y, texts)

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return texts with their words, and the tags of these."""
        texts, rows = self.read(model, X, y)
        if model.glued == "skip":
            rows = [_without_glued(text, row) for text, row in zip(texts, rows, strict=True)]
        weights = check_weights(sample_weight, len(texts))
        self.load_tokenizer(model)
        sources = with_words(model.tokenizer_, texts)
        tags, misfits = align(sources, rows, model.on_misaligned)
        warn_of(misfits, rows)
        return Examples(sources, tags, weights)

    def n_words(self, sources: list[SplitText]) -> Iterable[int]:
        """Return the number of words of each text."""
        return (len(text.words.ids) for text in sources)

    def true_tags(self, model: Model, inputs: list[Any], targets: list[Any]) -> list[Any]:
        """Return the tags of the words of texts."""
        sources = with_words(model.tokenizer_, inputs)
        return align(sources, targets, model.on_misaligned)[0]

    def drawn_by(self, X: Data, y: Data) -> tuple[Any, Any]:
        """Return the tags of the words, for folds and samplers."""
        tags = tags_of_texts(X, y)
        return tags, tags

    # ---- training

    def _learn_tags(
        self, model: Model, tags: list[list[Any]], mode: Mode, more: Rows | None
    ) -> None:
        kinds = [] if more is None else as_row_list("classes", more)
        kinds = [check_type(kind, f"classes[{i}]") for i, kind in enumerate(kinds)]
        # Each type of a fitted model has the first, and those that had several words the second.
        prefixes = "BI" if mode == "fresh" else "B"
        named = [f"{prefix}-{kind}" for kind in kinds if kind not in REGIONS for prefix in prefixes]
        found = {tag for row in tags for tag in row}
        if mode == "fresh" and not named and found <= {"O", None}:
            raise ValueError("y holds no entity: a recognizer needs some to learn from")
        if mode == "fresh" and None in found and "O" not in found:
            raise ValueError(
                "no word of y is known to be outside of entities, and a recognizer that learns "
                "from entities alone finds them everywhere: mark some regions without entities "
                "with the label 'O'"
            )
        super()._learn_tags(model, tags, mode, ["O", *named])

    def sources(self, model: Model, inputs: list[Any]) -> list[SplitText]:
        """Return texts with their words."""
        return with_words(model.tokenizer_, inputs)

    def encode(
        self, model: Model, sources: list[SplitText], cuts: Cuts | None = None
    ) -> Windows[Any]:
        """Return windows in which every word is predicted once."""
        words = (text.words.ids for text in sources)
        return _encode(model.tokenizer_, words, model.max_length_, model.stride)

    # ---- predictions

    def decide(
        self, model: Model, sources: list[SplitText], outputs: Iterable[np.ndarray]
    ) -> list[list[Any]]:
        """Return the entities of each text, of which no two overlap."""
        rows = zip(sources, self.tagged(model, sources, outputs), strict=True)
        found = [apart(_of_text(text, spans)) for text, (_, spans) in rows]
        if model.glued == "skip":
            found = [begin_unglued(*pair) for pair in zip(sources, found, strict=True)]
        return found

    def spans(
        self, model: Model, sources: list[SplitText], outputs: Iterable[np.ndarray]
    ) -> list[list[ScoredSpan]]:
        """Return the same as spans, in characters."""
        rows = self.decide(model, sources, outputs)
        return [[ScoredSpan(e.label, e.start, e.end, e.score) for e in row] for row in rows]

    # ---- scores

    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return micro scores; an entity that is there twice can be found once."""
        hits = n_true = n_found = 0
        for spans, row in zip(true, predicted, strict=True):
            known = [span for span in spans if span.label is not None]
            there = [span[:3] for span in known if span.label != "O"]
            unknown = [span for span in spans if span.label is None]
            found = {entity[:3] for entity in row if not _is_unjudged(entity, known, unknown)}
            hits += len(found.intersection(there))
            n_true, n_found = n_true + len(there), n_found + len(found)
        ratios = {"precision": n_found, "recall": n_true, "f1": (n_true + n_found) / 2}
        return {name: hits / n if n else 0.0 for name, n in ratios.items()}

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 by entities, which the tags of validation texts were made of."""
        true = [row.entities for row in held.targets]
        return super().validation_score(model, replace(held, targets=true), blocks)

    def paired_spans(
        self, model: Model, inputs: list[Any], true: Rows, predicted: Rows
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true and predicted entities as (type, start, end) for each row."""
        return typed_spans(true), typed_spans(read_entities(predicted, inputs))


def _without_glued(text: str, row: list[Entity]) -> list[Entity]:
    """The entities of a text; glued words that none of them touches are not annotated."""
    free = [
        Entity(start, end, None)
        for start, end in glued_words(text)
        if all(e.end <= start or end <= e.start for e in row)
    ]
    return [*row, *free]


def _of_text(text: SplitText, spans: list[ScoredSpan]) -> Iterator[Entity]:
    for kind, first, stop, score in spans:
        start, end = text.characters_of(first, stop)
        yield Entity(start, end, kind, score, text[start:end])


def _is_unjudged(entity: Entity, known: list[Entity], unknown: list[Entity]) -> bool:
    """Tell if an entity lies in a region that was not annotated, and touches no known entity."""
    inside = any(e.start <= entity.start and entity.end <= e.end for e in unknown)
    return inside and all(entity.end <= e.start or e.end <= entity.start for e in known)
