"""Questions with their contexts in files: the part that both readers share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from skdice.datasets.row import Row
from skdice.inputs.answers import as_questions
from skdice.tasks._base import Task
from skdice.tasks.token_rows import table_of_scores


class QuestionRows(Task):
    """A task whose rows are questions with a context, which holds their answers."""

    rows = "questions with contexts"
    example = '[("Who sings?", "Every day Ann sings in Rome.")]'
    formats: ClassVar[dict[str, str]] = {"squad": "predict", "jsonl": "predict"}
    rows_are = "json"

    def inputs(self, X: Any) -> list[Any]:
        """Return pairs of question and context."""
        return as_questions(X, may_be_empty=True)

    def groups(self, X: Any) -> Any:
        """Return the contexts: questions on one context are split together."""
        return [context for _, context in X]

    def written(self, model: Any, how: str, row: Row) -> Any:
        """Return the question and its answer."""
        return {"id": row.meta["id"], "question": row.x[0], "answer": row.y}

    def report(
        self, model: Any, X: Any, y: Any, predicted: Any, *, mode: str, as_json: bool
    ) -> Any:
        """Return scores of all questions, and of those with and without an answer."""
        rows = list(zip(y, predicted, strict=True))
        parts = {
            "": rows,
            " with answer": [row for row in rows if row[0]],
            " without answer": [row for row in rows if not row[0]],
        }
        scores: dict[str, float] = {}
        for name, kept in parts.items():
            if kept:
                for measure, value in self.rate(model, *zip(*kept, strict=True)).items():
                    scores[f"{measure.replace('_', ' ')}{name}"] = value
                scores[f"questions{name}"] = len(kept)
        return scores if as_json else table_of_scores(scores)

    def labels(self, y: Any) -> Iterable[Any] | None:
        """Return None: answers have no labels."""
        return None

    def scorer(self, y: Any) -> Any:
        """Return None: the estimator scores answers."""
        return None
