"""Sentences of tokens in files and streams: the part that tags and spans share."""

from __future__ import annotations

from typing import Any, ClassVar

from skdice.datasets.auto import read_source, task_of
from skdice.datasets.columns import Line, columns_of
from skdice.datasets.source import Source
from skdice.datasets.tables import Unlabelled
from skdice.datasets.tagged import holds_columns
from skdice.tasks._base import Task


class TokenRows(Task):
    """A task whose rows are sentences of tokens, with tags or spans."""

    hub_tag = "token-classification"
    example = '[["Ann", "lives", "in", "Rome"]]'
    keys: ClassVar[tuple[str, ...]] = ("tokens",)
    rows_are = "blocks"
    formats: ClassVar[dict[str, str]] = {
        "conll": "predict",
        "jsonl": "predict_tagged",
        "spans": "predict_tagged",
    }
    unit = "tokens"
    judged = "spans"

    def file_options(self, table: dict[str, Any], **of_offsets: str) -> dict[str, Any]:
        """Return the columns of tokens and tags."""
        return token_options(table)

    def unlabelled(self, model: Any, source: Source, table: dict[str, Any]) -> Unlabelled:
        """Return sentences of a file with or without tags."""
        sentences = tokens_in(model, source, table)
        return Unlabelled(sentences, [""] * len(sentences))

    def line(self, x: Any, found: Any) -> str:
        """Return a token and its tag a line."""
        return "\n".join(f"{token}\t{tag}" for token, tag in zip(x, found, strict=True))

    def record(self, model: Any, how: str, x: Any, meta: Any, found: Any) -> dict[str, Any]:
        """Return the tokens, the tags if there are any, and the spans."""
        return record_of_spans(how, x, *found, with_tags=model.scheme_ is not None)


def tokens_in(model: Any, source: Source, table: dict[str, Any]) -> list[list[str]]:
    """Sentences of a file with or without tags: in JSON, in columns, or a token a line."""
    if source.is_json:
        return read_source(source, model.task.name, {"with_tags": False}).X
    lines = source.lines
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        return [[token for token in block.split("\n") if token] for block in blocks]
    if "text_columns" not in table and task_of(source) != "tagging":
        refuse_text(repr(str(source.path)), lines, model)
    return read_source(source, "tagging", {"with_tags": False, **token_options(table)}).X


def token_options(table: dict[str, Any]) -> dict[str, Any]:
    """Options for columns of tokens and tags, from those of a table of texts and labels."""
    names = {"text_columns": "token_column", "label_column": "tag_column"}
    return {names.get(name, name): value for name, value in table.items()}


def tokens_of_block(model: Any, where: str, lines: list[str]) -> list[str]:
    """The tokens of a sentence, which stand alone or in columns."""
    separator = "\t" if any("\t" in line for line in lines) else None
    rows = [Line(i, line, line.split(separator)) for i, line in enumerate(lines, 1)]
    column = 0
    if any(len(row.cells) > 1 for row in rows):
        refuse_text(where, lines, model)
        column = columns_of(where, rows, None, None, with_tags=False).token
    return [row.cells[column] for row in rows]


def refuse_text(where: str, lines: list[str], model: Any) -> None:
    """Refuse lines of running text, of which a tagger would read the first words alone."""
    if not holds_columns(lines, getattr(model, "classes_", ())):
        raise ValueError(
            f"{where} holds running text ({lines[0]:.40}): write one token a line and blank lines "
            "between sentences, or name the column of tokens (text_columns); running text is for a "
            "recognizer, which is trained on texts with entities"
        )


def record_of_spans(
    how: str, tokens: list[str], tags: list[Any], spans: list[Any], *, with_tags: bool
) -> dict[str, Any]:
    """The record of a sentence: its tags and spans, or its spans with their words."""
    rounded = [(*span[:3], round(span.score, 6)) for span in spans]
    if how == "jsonl":
        return {"tokens": tokens, **({"tags": tags} if with_tags else {}), "spans": rounded}
    entries = [
        {
            "type": kind,
            "start": start,
            "end": end,
            "text": " ".join(tokens[start:end]),
            "score": score,
        }
        for kind, start, end, score in rounded
    ]
    return {"tokens": tokens, "spans": entries}


def table_of_scores(scores: dict[str, float]) -> str:
    """Scores as text, one a line."""
    return "".join(f"{name:>24} {value:8.4f}\n" for name, value in scores.items())
