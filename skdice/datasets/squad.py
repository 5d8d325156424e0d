"""Reading-comprehension files: SQuAD's JSON (also Quoref, CMRC, XQuAD) and BERT-MRC's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from skdice._checks import check_lengths, checked, shown
from skdice._types import Rows
from skdice.datasets.reading import fault
from skdice.datasets.row import Row, x_and_y
from skdice.datasets.source import Source
from skdice.inputs.answers import as_answers
from skdice.inputs.rows import as_row_list
from skdice.whole_files import write_text


@checked
def read_squad(
    path: str | Path,
    *,
    on_misaligned: str = "raise",
    articles: Sequence[str] | None = None,
    with_answers: bool = True,
    encoding: str = "utf-8",
) -> tuple[list[tuple[str, str]], list[list[tuple[int, str]]]]:
    """Questions, contexts and answers of a SQuAD file, v1.1 or v2.0.

    Flat records are read too: an array or JSON lines of objects that hold a ``question`` with its
    ``context`` and ``answers``, as the hub's `datasets` write them.

    Parameters
    ----------
    path : str or Path
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What to do with an answer that its context does not hold at its offset: raise an error
        that names the question's id; leave the answer out; or move it to the nearest place that
        holds it. A question that loses all its answers is left out.
    articles : list of str or None, default=None
        Titles of the articles to read; None is all.
    with_answers : bool, default=True
        False reads every question as one without an answer, as for a prediction.
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
    source = Source(Path(path), encoding, labelled=with_answers)
    rows = question_rows(source, on_misaligned=on_misaligned, articles=articles)
    return x_and_y(rows)


def question_rows(
    source: Source, *, on_misaligned: str = "raise", articles: Sequence[str] | None = None
) -> list[Row]:
    """The questions that `read_squad` reads, with their ids."""
    path = source.path
    every = _articles(path, [value for _, value in source.values], source.first)
    titles = [article.get("title") for article in every]
    if articles is not None:
        wanted = as_row_list("articles", articles)
        unknown = [title for title in wanted if not isinstance(title, str) or title not in titles]
        if unknown or not wanted:
            what = f"articles={shown(unknown)} are not in {str(path)!r}"
            raise ValueError(f"{what}, which has {titles}")
    rows: dict[str, Row] = {}  # by question id
    for article in every:
        if articles is not None and article.get("title") not in articles:
            continue
        for paragraph in article["paragraphs"]:
            for question in _field(path, paragraph, "qas", list):
                # A question without an id has its number.
                number = source.first + len(rows)
                name = str(question.get("id", number) if isinstance(question, dict) else "")
                asked = _field(path, question, "question", str)
                context = _field(path, paragraph, "context", str)
                if name in rows:
                    raise ValueError(f"{str(path)!r} holds the question id {name!r} twice")
                if not context.strip():
                    raise ValueError(f"{str(path)!r}: question {name!r} has an empty context")
                y = _answers(path, name, question) if source.labelled else []
                rows[name] = Row(f"question {name!r}", (asked, context), y, {"id": name})
    if not rows:
        raise ValueError(f"{str(path)!r} holds no question: is it a SQuAD file?")
    read = list(rows.values())
    contexts, names = [row.x[1] for row in read], [f"{str(path)!r}, {row.place}" for row in read]
    found: list[Any] = as_answers([row.y for row in read], contexts, on_misaligned, names)
    return [row._replace(y=y) for row, y in zip(read, found, strict=True) if y is not None]


def _articles(path: Path, values: list[Any], first: int) -> list[Any]:
    """Articles of SQuAD's JSON; a flat record is an article of one question."""
    data = values[0].get("data") if values and isinstance(values[0], dict) else None
    records = data if isinstance(data, list) else values
    if all(_has(record, "context", "qas") for record in records) and all(
        _has(question, "answers")
        for record in records
        if isinstance(record["qas"], list)
        for question in record["qas"]
    ):
        records = [{"title": None, "paragraphs": records}]
    elif all(_has(record, "question", "context") for record in records):
        records = [
            {**r, "paragraphs": [{"context": r["context"], "qas": [{"id": i, **r}]}]}
            for i, r in enumerate(records, first)
        ]
    for article in records:
        if _has(article, "context", "qas"):
            problem = "has 'context' and 'qas' beside the title, with one 'answer' for each "
            problem += "question, as KorQuAD 2 has: write 'paragraphs' of 'context' and 'qas' with "
            raise ValueError(f"{str(path)!r} {problem}lists 'answers', as SQuAD has")
        _field(path, article, "paragraphs", list)
    return records


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


@checked
def write_squad_predictions(path: str | Path, ids: Rows, predictions: Rows) -> Path:
    """Write predictions as the official evaluation script takes them: id to text.

    Parameters
    ----------
    path : str or Path
    ids, predictions : lists of str
        One of each for each question.

    Returns
    -------
    Path

    Raises
    ------
    TypeError
        If an id or a prediction is not a string.
    ValueError
        If lengths differ or an id occurs twice.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from skdice.datasets import write_squad_predictions
    >>> with TemporaryDirectory() as folder:
    ...     path = write_squad_predictions(f"{folder}/answers.json", ["q1", "q2"], ["Ann", ""])
    ...     print(path.read_text())
    {
     "q1": "Ann",
     "q2": ""
    }
    """
    path, ids = Path(path), as_row_list("ids", ids)
    predictions = as_row_list("predictions", predictions)
    check_lengths("questions", ids=ids, predictions=predictions)
    for what, values, kinds in (("ids", ids, (str, Integral)), ("predictions", predictions, str)):
        for i, value in enumerate(values):
            if not isinstance(value, kinds):
                raise TypeError(f"{what}[{i}] is {shown(value)}, not a string ('' is no answer)")
    table = dict(zip(map(str, ids), map(str, predictions), strict=True))
    if len(table) != len(ids):
        raise ValueError("ids holds an id twice")
    write_text(path, answers_json(table))
    return path


def answers_json(answers: dict[str, str]) -> str:
    """The text of a file of predictions, from ids to answers."""
    return json.dumps(answers, ensure_ascii=False, indent=1) + "\n"


@checked
def read_mrc_ner(
    path: str | Path, *, encoding: str = "utf-8"
) -> tuple[list[list[str]], list[list[tuple[str, int, int]]], dict[str, str]]:
    """Sentences, spans and queries of a file of the BERT-MRC repository.

    Each record there is one sentence with one query; those of a sentence are put together again.

    Parameters
    ----------
    path : str or Path
    encoding : str, default="utf-8"

    Returns
    -------
    X : list of lists of str
    y : list of lists of (type, start, end)
        Spans in tokens, ends exclusive; they may be nested.
    queries : dict
        Maps each type to its question, for ``DiceMRCTagger(queries=...)``.

    Raises
    ------
    ValueError
        If the file has another form, or a span lies outside its sentence.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skdice.datasets import read_mrc_ner
    >>> record = {
    ...     "qas_id": "0.1",
    ...     "context": "Ann sings",
    ...     "query": "find every person",
    ...     "entity_label": "PER",
    ...     "start_position": [0],
    ...     "end_position": [0],
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.json"
    ...     _ = path.write_text(json.dumps([record]))
    ...     read_mrc_ner(path)
    ([['Ann', 'sings']], [[('PER', 0, 1)]], {'PER': 'find every person'})
    """
    source = Source(Path(path), encoding)
    rows = query_rows(source)
    return *x_and_y(rows), source.queries or {}


def query_rows(source: Source) -> list[Row]:
    """The sentences that `read_mrc_ner` reads; the source has their queries."""
    path = source.path
    sentences: dict[str, tuple[list[str], list[tuple[str, int, int]]]] = {}
    queries: dict[str, str] = {}
    for place, record in source.values:
        text, query, label = (
            _field(path, record, name, str, "BERT-MRC")
            for name in ("context", "query", "entity_label")
        )
        # The id is SENTENCE.QUERY; without one, the text says which sentence it is.
        name = str(record.get("qas_id", "")).rpartition(".")[0] or text
        tokens, spans = sentences.setdefault(name, (text.split(), []))
        queries.setdefault(label, query)
        starts, ends = record.get("start_position", []), record.get("end_position", [])
        if not isinstance(starts, list) or not isinstance(ends, list):
            raise fault(path, place, "'start_position' and 'end_position' must be lists")
        if len(starts) != len(ends):
            problem = f"{len(starts)} values of 'start_position' and {len(ends)} of 'end_position'"
            raise fault(path, place, problem)
        for start, end in zip(starts, ends, strict=True):
            whole = isinstance(start, int) and isinstance(end, int)
            if not whole or not 0 <= start <= end < len(tokens):
                problem = f"the span {start} to {end} is not one of its {len(tokens)} tokens"
                raise fault(path, place, problem)
            spans.append((label, start, end + 1))
    if not sentences:
        raise ValueError(f"{str(path)!r} holds no sentence with a query: is it a BERT-MRC file?")
    source.queries = queries
    return [
        Row(name, tokens, sorted(spans, key=lambda s: s[1:]), {})
        for name, (tokens, spans) in sentences.items()
    ]


def _field(path: Path, record: Any, name: str, kind: Any, owner: str = "SQuAD") -> Any:
    """A field of a file, of the right type."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, kind):
        return value
    problem = f"{str(record)[:60]} has no {name!r}, or no proper one"
    raise ValueError(f"{str(path)!r} is not a {owner} file: {problem}")
