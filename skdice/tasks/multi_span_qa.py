"""Multi-span reading: a question and its context in, all of its answers out."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from skdice._types import Data, Model, Rows, Weights
from skdice._warn import warn
from skdice.engine.fit_plan import Examples, Mode
from skdice.exceptions import TruncationWarning
from skdice.inputs.answers import as_questions, read_answers
from skdice.inputs.entities import Entity
from skdice.tags.spans import ScoredSpan, flat_spans
from skdice.tasks._base import Blocks
from skdice.tasks.qa import aligned_questions, read_questions
from skdice.tasks.tagging import Tagging
from skdice.text.alignment import align, warn_of
from skdice.text.encoding import Windows, compact, windows_of_words
from skdice.text.long_texts import Cuts
from skdice.text.words import SplitText, with_words

ANSWER = "ANSWER"  # the type of the spans
_encode = compact(windows_of_words)
Source = tuple[str, SplitText]  # a question, and its context with its words


class MultiSpanReading(Tagging):
    """All answers to a question, as tags of the context's words (Segal et al. 2020)."""

    name = "multi-span-qa"
    rows = "questions with contexts"
    estimator = "DiceMultiSpanAnswerer"

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return pairs of question and context."""
        return as_questions(X, may_be_empty=True)

    def passages(self, inputs: list[Any]) -> list[Any]:
        """Return the contexts."""
        return [context for _, context in inputs]

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return pairs and their answers as (start, text)."""
        pairs, rows = read_questions(model, X, y)
        return pairs, [row or [] for row in rows]

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return questions, contexts with words, and the tags of these; not misaligned rows."""
        data, kept = aligned_questions(model, X, y, sample_weight)
        if not any(data.targets):
            raise ValueError("y holds no answer at all: a reader needs some to learn from")
        self.load_tokenizer(model)
        sources, spans = self.sources(model, data.inputs), _as_entities(data.targets)
        tags, misfits = align(self.passages(sources), spans)
        warn_of(misfits, spans, kept)
        return replace(data, inputs=sources, targets=tags)

    def true_tags(self, model: Model, inputs: list[Any], targets: list[Any]) -> list[Any]:
        """Return the tags of the words of the contexts."""
        contexts = self.passages(self.sources(model, inputs))
        return align(contexts, _as_entities(targets))[0]

    # ---- training

    def _learn_tags(
        self, model: Model, tags: list[list[Any]], mode: Mode, more: Rows | None
    ) -> None:
        super()._learn_tags(model, tags, mode, ["O", f"B-{ANSWER}", f"I-{ANSWER}"])

    def encode(self, model: Model, sources: list[Source], cuts: Cuts | None = None) -> Windows[Any]:
        """Return windows of contexts, each with its question."""
        longest, options = model.max_question_length, {"add_special_tokens": False}
        asked = model.tokenizer_([question for question, _ in sources], **options)["input_ids"]
        if n_cut := sum(len(ids) > longest for ids in asked):
            warn(
                f"{n_cut} questions are cut to max_question_length={longest} subwords: raise it",
                TruncationWarning,
            )
        rows = (context.words.ids for _, context in sources)
        settings = model.max_length_, model.stride, [ids[:longest] for ids in asked]
        return _encode(model.tokenizer_, rows, *settings)

    def sources(self, model: Model, inputs: list[Any]) -> list[Source]:
        """Return questions, and contexts with their words."""
        contexts = with_words(model.tokenizer_, self.passages(inputs))
        return [
            (question, context) for (question, _), context in zip(inputs, contexts, strict=True)
        ]

    def n_words(self, sources: list[Source]) -> Iterable[int]:
        """Return the number of words of each context."""
        return (len(context.words.ids) for _, context in sources)

    # ---- predictions

    def spans(
        self, model: Model, sources: list[Source], outputs: Iterable[np.ndarray]
    ) -> list[list[ScoredSpan]]:
        """Return the answers of each question as spans, in characters of the context."""
        rows = zip(sources, self.tagged(model, sources, outputs), strict=True)
        found = (
            [ScoredSpan(ANSWER, *context.characters_of(*at), score) for _, *at, score in spans]
            for (_, context), (_, spans) in rows
        )
        # One character may be several words of a tokenizer, or none.
        return [flat_spans(span for span in row if span.start < span.end) for row in found]

    def decide(
        self, model: Model, sources: list[Source], outputs: Iterable[np.ndarray]
    ) -> list[list[Any]]:
        """Return the texts of the answers, in the order of the context."""
        rows = zip(sources, self.spans(model, sources, outputs), strict=True)
        return [[text[span.start : span.end] for span in spans] for (_, text), spans in rows]

    # ---- scores

    def truth(self, model: Model, X: Data, y: Data) -> Any:
        """Return answers, wherever they are said to be."""
        return read_answers(y, len(self.inputs(X)))

    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return exact match and F1 of the best matching of answers, as in Quoref's evaluation."""
        rows = list(predicted)
        known = [[text for _, text in row] for row in read_answers(true, len(rows))]
        pairs = [match_answers(*pair) for pair in zip(known, rows, strict=True)]
        exact, f1 = np.mean(pairs, axis=0).tolist()
        return {"exact_match": exact, "f1": f1}

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 by the answers that the tags of validation rows were made of."""
        rows = zip(held.inputs, held.targets, strict=True)
        true = [
            [(e.start, context[e.start : e.end]) for e in r.entities] for (_, context), r in rows
        ]
        return super().validation_score(model, replace(held, targets=true), blocks)

    def paired_spans(
        self, model: Model, inputs: list[Any], true: Rows, predicted: Rows
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true answers, and the first places of predicted texts, as spans."""
        found = []
        for (_, context), row in zip(inputs, predicted, strict=True):
            starts = [(context.find(text), text) for text in row]
            found.append([(ANSWER, i, i + len(text)) for i, text in starts if i >= 0])
        return [[(ANSWER, i, i + len(text)) for i, text in row] for row in true], found

    def measure(self, model: Model) -> str:
        """Return what `rate` counts."""
        return "answers"


def _as_entities(answers: list[Any]) -> list[list[Entity]]:
    """The answers of each question as spans of its context."""
    return [[Entity(start, start + len(text), ANSWER) for start, text in row] for row in answers]


def match_answers(true: Sequence[str], predicted: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of two lists of answers, each from 0 to 1.

    The lists match exactly if they are equal after normalising, in any order. F1 is that of the
    words of the one-to-one matching with the highest sum, over the length of the longer list; an
    answer with numbers matches only what shares one of them. No answer is one empty answer. Source:
    the evaluation script of DROP (Dua et al. 2019), which Quoref (Dasigi et al. 2019) uses.
    """
    gold, found = ([_normalized(text) for text in rows or [""]] for rows in (true, predicted))
    table = np.array([[_f1(set(a.split()), set(b.split())) for b in found] for a in gold])
    matched = table[linear_sum_assignment(-table)].sum()
    exact = set(gold) == set(found) and len(gold) == len(found)
    return float(exact), float(matched) / max(len(gold), len(found))


def _f1(true: set[str], found: set[str]) -> float:
    numbers = {word for word in true if _is_numeral(word)}
    if numbers and not numbers & found:
        return 0.0
    if not true and not found:
        return 1.0
    shared = len(true & found)
    precision, recall = (shared / len(words) if words else 1.0 for words in (found, true))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _is_numeral(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _normalized(text: str) -> str:
    """Words in lower case, without articles and punctuation; numbers as numbers."""
    words = []
    for word in re.split("[ -]", text.lower()):
        if not _is_numeral(word):
            word = word.translate(str.maketrans("", "", string.punctuation))
        word = str(float(word)) if _is_numeral(word) else re.sub(r"\b(a|an|the)\b", " ", word)
        words += word.split()
    return " ".join(words)
