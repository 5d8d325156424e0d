"""`skdice evaluate`: scores of a saved model, for each class and on average."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def predictions(estimator: Any, data: Any) -> Any:
    """What `predict` gives; for a tagger by queries always the spans."""
    if estimator.task.name == "mrc-ner":
        return [[span[:3] for span in row] for row in estimator.predict_spans(data.X)]
    return estimator.predict(data.X)


def report(estimator: Any, data: Any, predicted: Any, *, mode: str, as_json: bool) -> Any:
    """Scores as values for JSON, or as text."""
    from sklearn.metrics import classification_report

    from skdice.metrics import span_report
    from skdice.metrics.labels import known_labels
    from skdice.metrics.span import report_of_spans, report_text, spans_scores
    from skdice.text.entities import as_entities

    how: dict[str, Any]
    if estimator.task.name == "tagging":
        how = {"scheme": estimator.scheme_, "mode": mode, "output_dict": as_json}
        return span_report(data.y, predicted, **how)
    if estimator.task.name == "entities":
        true, found = (
            [[(label, start, end) for start, end, label, *_ in row] for row in y]
            for y in (data.y, predicted)
        )
        table = report_of_spans(true, found, mode)
        return table if as_json else report_text(table)
    if estimator.task.name == "classification":
        how = {"output_dict": as_json, "zero_division": 0, "digits": 3}
        if estimator.multilabel_:
            names = estimator.classes_.astype(str)
            rows = known_labels(data.y, names, True)
            if len(names) == 1:  # which scikit-learn takes for two classes
                how["labels"] = [1]
            return classification_report(rows, predicted, target_names=names, **how)
        return classification_report(data.y, list(map(str, predicted)), **how)
    if estimator.task.name == "qa":
        scores = _qa_scores(estimator, data, predicted)
    else:  # a reader that was trained on tags predicts tags
        scores = spans_scores(*(as_entities(y, data.X)[0] for y in (data.y, predicted)))
    lines = (f"{name:>24} {value:8.4f}\n" for name, value in scores.items())
    return scores if as_json else "".join(lines)


def write_page(estimator: Any, data: Any, predicted: Any, path: Path, title: str) -> None:
    """Write the report as HTML; the file appears when it is complete."""
    from skdice.datasets.files import write_text
    from skdice.inspection import html_report

    if estimator.task.name == "classification" and not estimator.multilabel_:
        # The labels of a file are strings.
        predicted = list(map(str, predicted))
    write_text(path, html_report(estimator, data.X, data.y, y_pred=predicted, title=title))


def unseen_labels(estimator: Any, data: Any) -> list[str]:
    """Labels of a file that a classifier was not trained on."""
    if estimator.task.name != "classification" or estimator.multilabel_:
        return []
    return sorted(set(data.y) - {str(label) for label in estimator.classes_})


def _qa_scores(estimator: Any, data: Any, predicted: Any) -> dict[str, float]:
    """Scores of all questions, and of those with and without an answer."""
    from skdice.metrics import answer_exact_match_score, answer_f1_score

    scores: dict[str, float] = {}
    rows = list(zip(data.y, predicted, strict=True))
    answered, others = [row for row in rows if row[0]], [row for row in rows if not row[0]]
    for name, kept in (("", rows), (" with answer", answered), (" without answer", others)):
        if kept:
            pair, how = list(zip(*kept, strict=True)), {"language": estimator.language}
            scores[f"exact match{name}"] = answer_exact_match_score(*pair, **how)
            scores[f"f1{name}"] = answer_f1_score(*pair, **how)
            scores[f"questions{name}"] = len(kept)
    return scores
