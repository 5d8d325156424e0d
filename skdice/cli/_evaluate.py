"""`skdice evaluate`: scores of a saved model, for each class and on average."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def report(estimator: Any, data: Any, *, as_json: bool) -> Any:
    """Scores as values for JSON, or as text."""
    from sklearn.metrics import classification_report

    from skdice.metrics import span_report

    if estimator.task in ("qa", "mrc-ner"):
        qa = estimator.task == "qa"
        scores = _qa_scores(estimator, data) if qa else estimator.evaluate(data.X, data.y)
        if as_json:
            return scores
        return "".join(f"{name:>24} {value:8.4f}\n" for name, value in scores.items())
    predicted = estimator.predict(data.X)
    if estimator.task == "tagging":
        return span_report(data.y, predicted, scheme=estimator.scheme_, output_dict=as_json)
    labels = [str(label) for label in predicted]
    return classification_report(data.y, labels, output_dict=as_json, zero_division=0, digits=3)


def write_page(estimator: Any, data: Any, path: Path, title: str) -> None:
    """The report as HTML; the file is there whole or not at all."""
    from skdice.datasets.conll import write_text
    from skdice.inspection import html_report

    write_text(path, html_report(estimator, data.X, data.y, title=title))


def unseen_labels(estimator: Any, data: Any) -> list[str]:
    """Labels of a file that a classifier was not trained on."""
    if estimator.task != "classification":
        return []
    return sorted(set(data.y) - {str(label) for label in estimator.classes_})


def _qa_scores(estimator: Any, data: Any) -> dict[str, float]:
    """Scores of all questions, and of those with and without an answer."""
    from skdice.metrics import answer_exact_match_score, answer_f1_score

    predicted, language = estimator.predict(data.X), estimator.language
    scores: dict[str, float] = {}
    for name, kept in (
        ("", range(len(data.y))),
        (" with answer", [i for i, row in enumerate(data.y) if row]),
        (" without answer", [i for i, row in enumerate(data.y) if not row]),
    ):
        if not len(kept):
            continue
        y, texts = [data.y[i] for i in kept], [predicted[i] for i in kept]
        scores[f"exact match{name}"] = answer_exact_match_score(y, texts, language=language)
        scores[f"f1{name}"] = answer_f1_score(y, texts, language=language)
        scores[f"questions{name}"] = len(kept)
    return scores
