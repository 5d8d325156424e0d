"""Entities: raw text in, entities with their characters out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from skdice import backbones
from skdice.datasets.words import tagged_words
from skdice.engine.fit_plan import Examples, Mode
from skdice.inputs.entities import Entity, check_type, read_entities
from skdice.inputs.rows import as_row_list, check_weights
from skdice.inputs.texts import as_single_texts
from skdice.metrics.spans import report_of_spans, report_text
from skdice.tags.schemes import infer_scheme
from skdice.tags.spans import ScoredSpan
from skdice.tasks._base import Blocks, label_names
from skdice.tasks.tagging import Tagging
from skdice.text.alignment import REGIONS, align, tags_of_texts, typed_spans, warn_of
from skdice.text.encoding import Windows, compact, windows_of_words
from skdice.text.long_texts import Cuts
from skdice.text.words import (
    Words,
    apart,
    begin_unglued,
    glued_words,
    marks_subwords,
    split_texts,
)

_encode = compact(windows_of_words)
# A text and its words.
Split = tuple[str, Words]


class Entities(Tagging):
    """Entities of raw texts, whose words are tagged in IOB2."""

    name = "entities"
    rows = "texts with entities"
    estimator = "DiceEntityRecognizer"
    example = '["Ann lives in Rome."]'
    formats: ClassVar[dict[str, str]] = dict.fromkeys(
        ("jsonl", "doccano", "label-studio", "prodigy", "spacy", "brat"), "predict"
    )
    outputs = "tags_"
    has_words = False
    is_default = False
    rows_are = "mixed"

    # ---- rows

    def inputs(self, X: Any) -> list[Any]:
        """Return texts."""
        return as_single_texts(X, may_be_empty=True)

    def read(self, model: Any, X: Any, y: Any) -> tuple[list[Any], Any]:
        """Return texts and their entities; a label of None is a region without annotation."""
        texts = as_single_texts(X)
        rows: list[Any] = read_entities(y, texts)
        if model.unlabeled == "unknown":
            rows = [
                [*row, Entity(0, len(text), None)] for text, row in zip(texts, rows, strict=True)
            ]
        return texts, rows

    def examples(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        """Return texts and the tags of their words."""
        texts, rows = self.read(model, X, y)
        if model.glued == "skip":
            rows = [_without_glued(text, row) for text, row in zip(texts, rows, strict=True)]
        weights = check_weights(sample_weight, len(texts))
        if not hasattr(model, "tokenizer_"):  # which the words are those of
            model.tokenizer_ = backbones.load_tokenizer(model.backbone, model.revision)
        words = split_texts(model.tokenizer_, texts)
        tags, misfits = align(texts, rows, words, model.misaligned, model.overlapping)
        warn_of(misfits, rows)
        return Examples(texts, tags, weights)

    def n_words(self, model: Any, inputs: list[Any]) -> Iterable[int]:
        """Return the number of words of each text."""
        return (len(words.ids) for words in split_texts(model.tokenizer_, inputs))

    def true_tags(self, model: Any, inputs: list[Any], targets: list[Any]) -> list[Any]:
        """Return the tags of the words of texts."""
        words = split_texts(model.tokenizer_, inputs)
        return align(inputs, targets, words, model.misaligned, model.overlapping)[0]

    def drawn_by(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the tags of the words, for folds and samplers."""
        tags = tags_of_texts(X, y)
        return tags, tags

    # ---- training

    def _learn_tags(self, model: Any, tags: list[list[Any]], mode: Mode, more: Any) -> None:
        kinds = [] if more is None else as_row_list("classes", more)
        kinds = [check_type(kind, f"classes[{i}]") for i, kind in enumerate(kinds)]
        named = [f"{prefix}-{kind}" for kind in kinds if kind not in REGIONS for prefix in "BI"]
        found = {tag for row in tags for tag in row}
        if mode == "fresh" and not named and found <= {"O", None}:
            raise ValueError("y holds no entity: a recognizer needs some to learn from")
        if mode == "fresh" and None in found and "O" not in found:
            raise ValueError(
                "no word of y is known to be outside of entities, and a recognizer that learns "
                "from entities alone finds them everywhere: mark some regions without entities "
                f"with the label 'O'; unlabeled={model.unlabeled!r} could also be 'negative'"
            )
        super()._learn_tags(model, tags, mode, ["O", *named])

    def encode(self, model: Any, inputs: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return windows in which every word is predicted once."""
        return self.encode_sources(model, inputs, cuts)[1]

    def encode_sources(
        self, model: Any, inputs: list[Any], cuts: Cuts | None
    ) -> tuple[list[Split], Windows[Any]]:
        """Return texts with their words, which are split once, and their windows."""
        words = list(split_texts(model.tokenizer_, inputs))
        settings = model.max_length_, model.stride, model.label_all_subwords
        windows = _encode(model.tokenizer_, (of_text.ids for of_text in words), *settings)
        return list(zip(inputs, words, strict=True)), windows

    def sources(self, model: Any, inputs: list[Any]) -> list[Split]:
        """Return texts with their words, for tables of another model's making."""
        return list(zip(inputs, split_texts(model.tokenizer_, inputs), strict=True))

    # ---- predictions; `sources` are texts with their words

    def decide(
        self, model: Any, sources: list[Split], outputs: Iterable[np.ndarray]
    ) -> list[list[Any]]:
        """Return the entities of each text, of which no two overlap."""
        rows = zip(sources, self.tagged(model, sources, outputs), strict=True)
        found = [apart(_of_text(*source, spans)) for source, (_, spans) in rows]
        if model.glued == "skip":
            texts = [text for text, _ in sources]
            found = [begin_unglued(*pair) for pair in zip(texts, found, strict=True)]
        return found

    def spans(
        self, model: Any, sources: list[Split], outputs: Iterable[np.ndarray]
    ) -> list[list[ScoredSpan]]:
        """Return the same as spans, in characters."""
        rows = self.decide(model, sources, outputs)
        return [[ScoredSpan(e.label, e.start, e.end, e.score) for e in row] for row in rows]

    # ---- scores

    def rate(self, model: Any, true: Any, predicted: Iterable[Any]) -> dict[str, float]:
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

    def validation_score(self, model: Any, held: Examples, blocks: Blocks) -> float:
        """Return F1 by entities, which the tags of validation texts were made of."""
        true = [row.entities for row in held.targets]
        return super().validation_score(model, replace(held, targets=true), blocks)

    def paired_spans(
        self, model: Any, inputs: list[Any], true: Any, predicted: Any
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true and predicted entities as (type, start, end) for each row."""
        return typed_spans(true), typed_spans(read_entities(predicted, inputs))

    # ---- the model card

    def transformers_code(self, model: Any) -> str:
        """Return code whose pipeline gets the words, where it would find others."""
        code, skips = super().transformers_code(model), model.glued == "skip"
        if marks_subwords(model.tokenizer_) and not skips:
            return code
        glued = ', glued="skip"' if skips else ""
        return code.replace(
            'model("Ann lives in Rome")',
            "from skdice.text import pipeline_entities\n"
            f'pipeline_entities(model, ["Ann lives in Rome."]{glued})',
        )

    def card_notes(self, model: Any, native: bool) -> str:
        """Return the same as for tags, and why a pipeline needs the words."""
        notes = super().card_notes(model, native)
        if marks_subwords(model.tokenizer_):
            return notes
        return (
            "With this kind of tokenizer a pipeline takes all between two blanks for one word, "
            f"punctuation included: `pipeline_entities` gives it the words.\n\n{notes}"
        )

    def pipeline_caveat(self, model: Any) -> str:
        """Return that a pipeline finds more, where glued words are skipped."""
        if model.glued != "skip":
            return ""
        return (
            "This recognizer has `glued='skip'`: it finds no entity that begins in a word behind "
            "another character without a blank, such as a handle (@name). A pipeline of "
            "transformers finds these too. Call `pipeline_entities(pipeline, texts, glued='skip')` "
            "of skdice.text, or `predict`, which do not."
        )

    # ---- rows in files: the formats of annotation tools write them

    def labels(self, y: Any) -> Iterable[Any] | None:
        """Return the types of all entities."""
        return (label for row in y for _, _, label, *_ in row)

    def counted(self, X: Any, y: Any) -> Any:
        """Return the tags of the words."""
        return [tags for _, tags in tagged_words(X, y)]

    def scorer(self, y: Any) -> Any:
        """Return None: the estimator scores entities."""
        return None

    def report(
        self, model: Any, X: Any, y: Any, predicted: Any, *, mode: str, as_json: bool
    ) -> Any:
        """Return the report of entities."""
        table = report_of_spans(typed_spans(y), typed_spans(predicted), mode)
        return table if as_json else report_text(table)

    # ---- models of transformers

    def fitted_of(self, model: Any, config: Any) -> dict[str, Any]:
        """Return tags in IOB2 from the labels of a model."""
        names = label_names(config)
        scheme = infer_scheme([], names)
        if scheme == "plain":  # a pipeline joins neighbours of one type
            names = [tag if tag == "O" else f"I-{tag}" for tag in names]
        elif scheme not in ("iob1", "iob2"):
            raise ValueError(
                f"the model's labels are in the scheme {scheme!r} ({names[:5]}), which a "
                "recognizer does not read: use DiceTokenClassifier.from_transformers"
            )
        return {"tags": sorted(names), "scheme": "iob2", "order": np.argsort(names)}


def _without_glued(text: str, row: list[Entity]) -> list[Entity]:
    """The entities of a text; glued words that none of them touches are not annotated."""
    free = [
        Entity(start, end, None)
        for start, end in glued_words(text)
        if all(e.end <= start or end <= e.start for e in row)
    ]
    return [*row, *free]


def _of_text(text: str, words: Words, spans: list[ScoredSpan]) -> Iterator[Entity]:
    for kind, first, last, score in spans:
        start, end = int(words.starts[first]), int(words.ends[last - 1])
        yield Entity(start, end, kind, score, text[start:end])


def _is_unjudged(entity: Entity, known: list[Entity], unknown: list[Entity]) -> bool:
    """Tell if an entity lies in a region that was not annotated, and touches no known entity."""
    inside = any(e.start <= entity.start and entity.end <= e.end for e in unknown)
    return inside and all(entity.end <= e.start or e.end <= entity.start for e in known)
