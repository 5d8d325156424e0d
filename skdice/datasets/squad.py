"""Reading-comprehension files: SQuAD's JSON (also Quoref, CMRC, XQuAD) and BERT-MRC's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdice.datasets.conll import read_bytes, write_text
from skdice.text.answers import as_answers

__all__ = ["read_mrc_ner", "read_squad", "write_squad_predictions"]


def read_squad(
    path: str | Path,
    *,
    on_misaligned: str = "raise",
    articles: Sequence[str] | None = None,
    return_ids: bool = False,
    with_answers: bool = True,
) -> Any:
    """Questions, contexts and answers of a SQuAD file, v1.1 or v2.0.

    Parameters
    ----------
    path : str or Path
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What to do with an answer that its context does not hold at its offset: raise an error
        that names the question's id; leave the answer out; or move it to the nearest place that
        holds it. A question that loses all its answers is left out.
    articles : list of str or None, default=None
        Titles of the articles to read; None is all.
    return_ids : bool, default=False
    with_answers : bool, default=True
        False reads every question as one without an answer, as for a prediction.

    Returns
    -------
    X : list of (str, str)
        Question and context.
    y : list of lists of (int, str)
        Start (in characters) and text of each answer; [] for an unanswerable question.
    ids : list of str
        With ``return_ids``.

    Raises
    ------
    ValueError
        If the file is not SQuAD's, an id occurs twice, or an answer does not match.

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
    path = Path(path)
    data = _load(path)
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        raise ValueError(f"{str(path)!r} is not a SQuAD file: it has no list under 'data'")
    for article in data["data"]:
        _field(path, article, "paragraphs", list)
    titles = [article.get("title") for article in data["data"]]
    unknown = sorted(set(articles or []) - set(titles))
    if unknown:
        raise ValueError(f"articles={unknown} are not in {str(path)!r}, which has {titles}")
    X: list[tuple[str, str]] = []
    rows: dict[str, Any] = {}  # by question id
    for article in data["data"]:
        if articles is not None and article.get("title") not in articles:
            continue
        for paragraph in article["paragraphs"]:
            for question in _field(path, paragraph, "qas", list):
                name = str(_field(path, question, "id", (str, int)))
                _field(path, question, "question", str)
                _field(path, paragraph, "context", str)
                if name in rows:
                    raise ValueError(f"{str(path)!r} holds the question id {name!r} twice")
                if not paragraph["context"].strip():
                    raise ValueError(f"{str(path)!r}: question {name!r} has an empty context")
                X.append((question["question"], paragraph["context"]))
                impossible = question.get("is_impossible", False) or not with_answers
                rows[name] = [] if impossible else question.get("answers", [])
    ids, contexts = list(rows), [context for _, context in X]
    names = [f"question {name!r}" for name in ids]
    y = as_answers(list(rows.values()), contexts, on_misaligned, names) if X else []
    kept = [i for i, answers in enumerate(y) if answers is not None]
    found: tuple[list[Any], list[Any]] = [X[i] for i in kept], [y[i] for i in kept]
    return (*found, [ids[i] for i in kept]) if return_ids else found


def write_squad_predictions(
    path: str | Path, ids: Sequence[str], predictions: Sequence[str]
) -> Path:
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
    ValueError
        If lengths differ or an id occurs twice.
    """
    path = Path(path)
    if len(ids) != len(predictions):
        raise ValueError(f"there are {len(ids)} ids and {len(predictions)} predictions")
    table = dict(zip(map(str, ids), map(str, predictions), strict=True))
    if len(table) != len(ids):
        raise ValueError("ids holds an id twice")
    write_text(path, json.dumps(table, ensure_ascii=False, indent=1) + "\n")
    return path


def read_mrc_ner(
    path: str | Path,
) -> tuple[list[list[str]], list[list[tuple[str, int, int]]], dict[str, str]]:
    """Sentences, spans and queries of a file of the BERT-MRC repository.

    Each record there is one sentence with one query; those of a sentence are put together again.

    Parameters
    ----------
    path : str or Path

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
    """
    path = Path(path)
    records = _load(path)
    if not isinstance(records, list) or not all(
        isinstance(r, dict) and {"context", "query", "entity_label"} <= set(r) for r in records
    ):
        raise ValueError(
            f"{str(path)!r} is not a BERT-MRC file: a list of records with 'context', 'query', "
            "'entity_label', 'start_position' and 'end_position'"
        )
    sentences: dict[str, tuple[list[str], list[tuple[str, int, int]]]] = {}
    queries: dict[str, str] = {}
    for i, record in enumerate(records):
        # The id is SENTENCE.QUERY; without one, the text says which sentence it is.
        name = record["context"]
        if "." in str(record.get("qas_id", "")):
            name = str(record["qas_id"]).rpartition(".")[0]
        tokens, spans = sentences.setdefault(name, (record["context"].split(), []))
        label = record["entity_label"]
        queries.setdefault(label, record["query"])
        starts, ends = record.get("start_position", []), record.get("end_position", [])
        if len(starts) != len(ends):
            raise ValueError(
                f"{str(path)!r}, record {i} has {len(starts)} values of 'start_position' and "
                f"{len(ends)} of 'end_position'"
            )
        for start, end in zip(starts, ends, strict=True):
            if not 0 <= start <= end < len(tokens):
                raise ValueError(
                    f"{str(path)!r}, record {i}: the span {start} to {end} lies outside its "
                    f"{len(tokens)} tokens"
                )
            spans.append((label, start, end + 1))
    X = [tokens for tokens, _ in sentences.values()]
    return X, [sorted(spans, key=lambda s: s[1:]) for _, spans in sentences.values()], queries


def _field(path: Path, record: Any, name: str, kind: Any) -> Any:
    """A field of a SQuAD file, of the right type."""
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise ValueError(
            f"{str(path)!r} is not a SQuAD file: {str(record)[:60]} has no {name!r}, or no proper "
            "one"
        )
    return value


def _load(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is not JSON: {error}") from error
