"""Reading: a question and its context in, the answer or none out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from skdice._checks import counted
from skdice._types import Data, Model, Rows, Weights
from skdice._warn import warn
from skdice.engine.devices import to_device
from skdice.engine.encoded import Update
from skdice.engine.fit_plan import Examples, Mode, fresh_loss
from skdice.exceptions import CollapseWarning, MisalignedWarning
from skdice.inputs.answers import Answer, as_answers, as_questions, read_answers
from skdice.inputs.rows import check_weights
from skdice.losses.base import check_classes, resolve_loss
from skdice.losses.span_ends import SpanEndsLoss
from skdice.metrics import answer_exact_match_score, answer_f1_score
from skdice.tasks._base import Blocks, Task
from skdice.text.best_answers import Candidate, best_answers, tune_null_threshold
from skdice.text.encoding import Windows
from skdice.text.long_texts import Cuts
from skdice.text.question_windows import ReadingWindow, encode_questions, is_mark

Ranked = tuple[list[Candidate], float]  # answers, the best first, and the score of none


class Reading(Task):
    """Answers to questions: the positions where they start and end."""

    name = "qa"
    rows = "questions with contexts"
    estimator = "DiceQuestionAnswerer"
    head: ClassVar[str | None] = "QuestionAnswering"
    judged = "answers"
    has_classes = False
    longest = 384

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return pairs of question and context."""
        return as_questions(X, may_be_empty=True)

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return pairs and their answers, None where all of them are misaligned."""
        return read_questions(model, X, y)

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return questions and answers to learn from, without those that are misaligned."""
        return aligned_questions(model, X, y, sample_weight)[0]

    # ---- training

    def check_params(self, model: Model, mode: Mode) -> None:
        """Refuse losses that have no meaning over positions."""
        SpanEndsLoss(resolve_loss(model.loss))
        check_classes(model.loss, (0, 1))

    def learn(
        self, model: Model, data: Examples, held: Examples | None, mode: Mode, classes: Rows | None
    ) -> tuple[Examples, Examples | None]:
        """Learn nothing: there are no labels."""
        return data, held

    def strata(self, model: Model, data: Examples) -> Any:
        """Return whether each question has an answer."""
        return [bool(answers) for answers in data.targets]

    def prepare_training(self, model: Model, data: Examples, held: Examples | None) -> None:
        """Set the threshold of no answer to its first value."""
        if not any(data.targets):
            raise ValueError("y holds no answer at all: a reader needs some to learn from")
        model.null_threshold_ = float("inf") if all(data.targets) else 0.0
        if model.null_threshold != "auto":
            model.null_threshold_ = float(model.null_threshold)

    def named(self, model: Model) -> Callable[[Any, Any], Any]:
        """Return what tells whether a window's best start is an answer."""
        return _answers

    def nothing_found(self, model: Model, seen: np.ndarray) -> str | None:
        """Return what a model does that found no answer."""
        return None if seen.any() else "finds no answer"

    def n_outputs(self, model: Model) -> int:
        """Return 2, for start and end."""
        return 2

    def encode(self, model: Model, sources: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return windows of the contexts, each with its question."""
        return encode_questions(
            model.tokenizer_,
            sources,
            model.max_length_,
            stride=model.stride,
            max_question_length=model.max_question_length,
        )

    def target(self, model: Model, window: ReadingWindow, of_row: list[Answer]) -> np.ndarray:
        """Return for each position 0 or 1 as start and as end, and 1 at the window's first."""
        target = np.zeros((len(window.positions), 3), dtype=np.float32)
        target[0, 2] = 1
        start = end = 0  # the summary token stands for no answer
        if of_row:
            first, text = max(of_row, key=of_row.count)
            # No token begins with a space or a mark, and none ends with a space.
            last = first + len(text.rstrip())
            first += next((i for i, c in enumerate(text) if not (c.isspace() or is_mark(c))), 0)
            inside = np.flatnonzero(
                (window.offsets[:, 1] > first) & (window.offsets[:, 0] < last) & (window.words >= 0)
            )
            whole = (
                len(inside)
                and window.offsets[inside[0], 0] <= first
                and window.offsets[inside[-1], 1] >= last
            )
            if whole:
                start, end = int(inside[0]), int(inside[-1])
        target[start, 0] = target[end, 1] = 1
        return target

    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the loss of starts and ends."""
        targets, shares = dataset.flat_targets()
        counts = np.bincount(targets[:, 0].astype(int), shares, minlength=2)
        return SpanEndsLoss(fresh_loss(model.loss).prepare(counts))

    def after_training(self, model: Model, held: Examples | None, blocks: Blocks) -> None:
        """Tune the threshold of no answer, if some validation questions have one and some none."""
        answered = 0 if held is None else sum(map(bool, held.targets))
        if held is not None and 0 < answered < len(held) and _tunes_threshold(model):
            model.null_threshold_, _, n_answered = _best_threshold(model, held, blocks)
            if not n_answered:
                warn(
                    "the fitted model answers no validation question at its tuned null_threshold_: "
                    "train longer (max_epochs), or set null_threshold",
                    CollapseWarning,
                )

    # ---- predictions

    def row_outputs(self, model: Model, rows: Iterable[Any], n_best: int = 1) -> list[Ranked]:
        """Return candidates and the score of no answer for each question."""
        return [
            best_answers(
                [(scores, w.words, w.offsets, w.context_score) for w, scores in windows],
                n_best,
                model.max_answer_length,
            )
            for windows in rows
        ]

    def decide(self, model: Model, sources: list[Any], outputs: Iterable[Ranked]) -> list[str]:
        """Return the answer to each question, empty where the context holds none."""
        texts = []
        for (_, context), (candidates, null) in zip(sources, outputs, strict=True):
            answered = candidates and null - candidates[0].score <= model.null_threshold_
            texts.append(context[candidates[0].start : candidates[0].end] if answered else "")
        return texts

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 on validation questions, at the best threshold if it is tuned."""
        if _tunes_threshold(model):
            return _best_threshold(model, held, blocks)[1]
        return super().validation_score(model, held, blocks)

    # ---- scores

    def truth(self, model: Model, X: Data, y: Data) -> Any:
        """Return answers, wherever they are said to be."""
        return read_answers(y, len(self.inputs(X)))

    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return exact match and F1 as in SQuAD's evaluation."""
        texts = list(predicted)
        answers = read_answers(true, len(texts))
        return {
            "exact_match": answer_exact_match_score(answers, texts),
            "f1": answer_f1_score(answers, texts),
        }

    def measure(self, model: Model) -> str:
        """Return what `rate` counts."""
        return "answers"


def read_questions(model: Model, X: Data, y: Data) -> tuple[list[Any], list[Any]]:
    """Pairs of question and context with their answers, None where all of them are misaligned."""
    pairs = as_questions(X)
    return pairs, as_answers(y, [context for _, context in pairs], model.on_misaligned)


def aligned_questions(
    model: Model, X: Data, y: Data, sample_weight: Weights
) -> tuple[Examples, np.ndarray]:
    """Questions and answers without those that are misaligned, and the rows of y that are left."""
    pairs, rows = read_questions(model, X, y)
    kept = np.flatnonzero([row is not None for row in rows])
    if len(kept) < len(rows):
        warn(
            f"left out {len(rows) - len(kept)} of {counted(len(rows), 'question')}, whose "
            f"answers are not in their contexts (on_misaligned={model.on_misaligned!r})",
            MisalignedWarning,
        )
    if not len(kept):
        raise ValueError("no question is left: every answer is missing from its context")
    weights = check_weights(sample_weight, len(pairs))
    return Examples(pairs, [row or [] for row in rows], weights).take(kept), kept


def _tunes_threshold(model: Model) -> bool:
    return model.null_threshold == "auto" and bool(np.isfinite(model.null_threshold_))


def _best_threshold(model: Model, held: Examples, blocks: Blocks) -> tuple[float, float, int]:
    """The threshold with the best F1, that F1, and how many questions it answers."""
    gaps, values, nulls = [], [], []
    ranked = (pair for block in blocks for pair in zip(*block, strict=True))
    for row, ((_, context), (candidates, null)) in zip(held.targets, ranked, strict=True):
        text = context[candidates[0].start : candidates[0].end] if candidates else ""
        gaps.append(null - candidates[0].score if candidates else 0.0)
        values.append(answer_f1_score([row], [text]))
        nulls.append(float(not row))
    threshold = tune_null_threshold(np.array(gaps), np.array(values), np.array(nulls))
    answered = np.array(gaps) <= threshold
    return threshold, float(np.mean(np.where(answered, values, nulls))), int(answered.sum())


def _answers(logits: torch.Tensor, batch: Update) -> torch.Tensor:
    """Where a window's first position, which stands for no answer, is not its best start."""
    assert batch.target is not None
    first = to_device(batch.target, str(logits.device))[:, 2] > 0
    window, starts = first.cumsum(0) - 1, logits[:, 0]
    best = torch.zeros_like(starts).scatter_reduce(0, window, starts, "amax", include_self=False)
    return (first & (starts < best[window])).unsqueeze(-1)
