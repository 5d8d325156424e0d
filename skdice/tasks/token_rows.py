"""Sentences of tokens and their predictions in files: the part that tags and spans share."""

from __future__ import annotations

from typing import Any, ClassVar

from skdice.datasets.row import Row
from skdice.tasks._base import Task


class TokenRows(Task):
    """A task whose rows are sentences of tokens, with tags or spans."""

    hub_tag = "token-classification"
    example = '[["Ann", "lives", "in", "Rome"]]'
    rows_are = "blocks"
    formats: ClassVar[dict[str, str]] = {
        "conll": "predict",
        "jsonl": "predict_tagged",
        "spans": "predict_tagged",
    }
    unit = "tokens"
    judged = "spans"

    def written(self, model: Any, how: str, row: Row) -> Any:
        """Return a line for each token and its tag, or the tokens, tags if any, and spans."""
        x = row.x
        if how == "conll":
            return "\n".join(f"{token}\t{tag}" for token, tag in zip(x, row.y, strict=True))
        tags, spans = row.y
        rounded = [(*span[:3], round(span.score, 6)) for span in spans]
        if how == "spans":
            names = ("type", "start", "end", "text", "score")
            cells = ((*span[:3], " ".join(x[span[1] : span[2]]), span[3]) for span in rounded)
            return {"tokens": x, "spans": [dict(zip(names, of, strict=True)) for of in cells]}
        return {"tokens": x, **({} if model.scheme_ is None else {"tags": tags}), "spans": rounded}


def table_of_scores(scores: dict[str, float]) -> str:
    """Scores as text, one a line."""
    return "".join(f"{name:>24} {value:8.4f}\n" for name, value in scores.items())
