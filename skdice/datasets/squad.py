"""Reading-comprehension files: SQuAD's JSON (also Quoref, CMRC, XQuAD) and BERT-MRC's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdice._checks import checked
from skdice.datasets.cells import values_of
from skdice.datasets.row import Reading, Row, x_and_y
from skdice.datasets.source import Source, fault
from skdice.inputs.answers import as_answers


@checked
def read_squad(
    path: str | Path,
    *,
    on_misaligned: str = "raise",
    encoding: str = "utf-8",
) -> tuple[list[tuple[str, str]], list[list[tuple[int, str]]]]:
    """Questions, contexts and answers of a SQuAD file, v1.1 or v2.0.

    Flat records are read too: an array or JSON lines of objects that hold a ``question`` with its
    ``context`` and ``answers``, as the hub's `datasets` write them.

    Parameters
    ----------
    path : str or Path
    on_misaligned : {"raise", "drop", "expand"}, default="raise"
        What to do with an answer that its context does not hold at its offset: raise an error
        that names the question's id; leave the answer out; or move it to the nearest place that
        holds it. A question that loses all its answers is left out.
    encoding : str, default="utf-8"

    Returns
    -------
    X : list of (str, str)
        Question and context.
    y : list of lists of (int, str)
        Start (in characters) and text of each answer; [] for an unanswerable question.

    Raises
    ------
    ValueError
        If the file is not SQuAD's, an id occurs twice, a question has no list of answers (an empty
        one marks a question that has none), or an answer does not match.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from skdice.datasets import read_squad
    >>> question = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    >>> paragraph = {"context": "Ann sings.", "qas": [question]}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "s.json"
    >>> _ = path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    >>> read_squad(path)
    ([('Who?', 'Ann sings.')], [[(0, 'Ann')]])
    """
    return x_and_y(question_rows(Source(Path(path), encoding), on_misaligned=on_misaligned).rows)


def question_rows(
    source: Source, *, on_misaligned: str = "raise", labelled: bool = True
) -> Reading:
    """The questions that `read_squad` reads, with their ids."""
    values = [value for _, value in values_of(source)]
    if not values:
        problem = "is not a SQuAD file: questions are read from JSON"
        raise ValueError(f"{str(source.path)!r} {problem}")
    rows: dict[str, Row] = {}  # by question id
    for paragraph in _paragraphs(source.path, values):
        for question in _field(source.path, paragraph, "qas", list):
            row = _row(source.path, paragraph, question, len(rows), labelled)
            if row.meta["id"] in rows:
                problem = f"holds the question id {row.meta['id']!r} twice"
                raise ValueError(f"{str(source.path)!r} {problem}")
            rows[row.meta["id"]] = row
    if not rows:
        raise ValueError(f"{str(source.path)!r} holds no question: is it a SQuAD file?")
    contexts = [row.x[1] for row in rows.values()]
    names = [f"{str(source.path)!r}, {row.place}" for row in rows.values()]
    y: list[Any] = [row.y for row in rows.values()]
    y = as_answers(y, contexts, on_misaligned, names)
    pairs = zip(rows.values(), y, strict=True)
    return Reading([row._replace(y=held) for row, held in pairs if held is not None])


def _row(path: Path, paragraph: Any, question: Any, number: int, labelled: bool) -> Row:
    """The row of a question, which without an id has its number."""
    name = str(question.get("id", number) if isinstance(question, dict) else "")
    asked = _field(path, question, "question", str)
    context = _field(path, paragraph, "context", str)
    if not context.strip():
        raise ValueError(f"{str(path)!r}: question {name!r} has an empty context")
    y = _answers(path, name, question) if labelled else []
    return Row(f"question {name!r}", (asked, context), y, {"id": name})


def _paragraphs(path: Path, values: list[Any]) -> list[Any]:
    """The paragraphs of SQuAD's JSON; a flat record is a paragraph of one question."""
    records: list[Any] = []  # of one object of SQuAD, or of several
    for value in values:
        data = value.get("data") if isinstance(value, dict) else None
        if isinstance(data, list) and not {"paragraphs", "context", "qas"} & set(value):
            records += data
        else:
            records.append(value)
    if all(map(_is_paragraph, records)):
        return records
    if all(_has(record, "question", "context") for record in records):
        return [
            {"context": record["context"], "qas": [{"id": i, **record}]}
            for i, record in enumerate(records)
        ]
    if any(_has(article, "context", "qas") for article in records):
        problem = "has 'context' and 'qas' beside the title, with one 'answer' for each "
        problem += "question, as KorQuAD 2 has: write 'paragraphs' of 'context' and 'qas' with "
        raise ValueError(f"{str(path)!r} {problem}lists 'answers', as SQuAD has")
    return [each for article in records for each in _field(path, article, "paragraphs", list)]


def _is_paragraph(record: Any) -> bool:
    """Return True of a context with questions, each of which has a list of answers."""
    if not _has(record, "context", "qas"):
        return False
    questions = record["qas"]
    return not isinstance(questions, list) or all(_has(each, "answers") for each in questions)


def _has(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and set(names) <= set(value)


def _answers(path: Path, name: str, question: dict[str, Any]) -> Any:
    """The answers of a question; none if it says that it is impossible."""
    impossible, answers = question.get("is_impossible", False), question.get("answers")
    if not isinstance(impossible, bool):
        problem = f"'is_impossible' is {impossible!r}: it must be true or false"
    elif not impossible and not isinstance(answers, (list, dict)):
        problem = "there is no list 'answers': give [] if the context holds none"
    else:
        return [] if impossible else answers
    raise fault(path, f"question {name!r}", problem)


# ---- BERT-MRC


def query_rows(source: Source) -> Reading:
    """The sentences of a file of the BERT-MRC repository, with their spans and queries.

    Each record there is one sentence with one query; those of a sentence are put together again.
    Spans are (type, start, end) in tokens, ends exclusive, and may be nested.
    """
    path, names = source.path, ("context", "query", "entity_label")
    sentences: dict[Any, tuple[list[str], list[tuple[str, int, int]]]] = {}
    queries: dict[str, str] = {}
    for place, record in source.values:
        text, query, label = (_field(path, record, name, str, "BERT-MRC") for name in names)
        # The id is SENTENCE.QUERY; without one, the text says which sentence it is.
        name = str(record.get("qas_id", "")).rpartition(".")[0] or text
        # Ids begin anew in each file, of which one may hold several.
        tokens, spans = sentences.setdefault((name, text), (text.split(), []))
        queries.setdefault(label, query)
        spans += [(label, *pair) for pair in _token_spans(source, place, record, len(tokens))]
    rows = [
        Row(name, tokens, sorted(spans, key=lambda s: s[1:]), {})
        for (name, _), (tokens, spans) in sentences.items()
    ]
    return Reading(rows, queries=queries)


def _token_spans(
    source: Source, place: Any, record: dict[str, Any], n_tokens: int
) -> Iterator[tuple[int, int]]:
    """The start and end of each span of a record."""
    names = ("start_position", "end_position")
    starts, ends = (source.listed(place, record, name) for name in names)
    if len(starts) != len(ends):
        problem = f"{len(starts)} values of 'start_position' and {len(ends)} of 'end_position'"
        raise source.fault(place, problem)
    for start, end in zip(starts, ends, strict=True):
        whole = isinstance(start, int) and isinstance(end, int)
        if not whole or not 0 <= start <= end < n_tokens:
            problem = f"the span {start} to {end} is not one of its {n_tokens} tokens"
            raise source.fault(place, problem)
        yield start, end + 1


def _field(path: Path, record: Any, name: str, kind: Any, owner: str = "SQuAD") -> Any:
    """A field of a file, of the right type."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, kind):
        return value
    problem = f"{str(record)[:60]} has no {name!r}, or no proper one"
    raise ValueError(f"{str(path)!r} is not a {owner} file: {problem}")
