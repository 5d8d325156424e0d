"""The page of a fitted model: its figures are scikit-learn's, its text is escaped."""

from __future__ import annotations

import html.parser
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceSequenceClassifier,
    TfidfClassifier,
)
from skdice.inspection import html_report
from skdice.inspection.class_counts import row_counts, summed
from skdice.inspection.report import _interval, _resampled
from skdice.metrics import AlertBudget, span_precision_recall_fscore_support
from skdice.metrics.classification import precision_recall_f1
from skdice.tags.spans import ScoredSpan
from skdice.tasks import TASKS

pytest.importorskip("matplotlib")
EVIL = "<script>alert('x')</script>"


class Fixed(BaseEstimator):
    """Answers what it was told."""

    loss = "dsc"

    def __init__(self, task, answers, scheme="iob2"):
        self.task, self.answers, self.scheme, self.scheme_ = TASKS[task], answers, scheme, scheme
        self.classes_ = ["ham", "spam"]

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answers

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def shown(true, predicted):
    """The part of a page that tells what is true and what was predicted."""
    parts = {"true": true, "predicted": predicted}.items()
    return "".join(f'<p class="note">{name}:</p><p><b>{text}</b></p>' for name, text in parts)


def cells(page):
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    table = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
    return {row[0]: row[1:] for row in table}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=20))
def test_class_counts_are_those_of_scikit_learn(pairs):
    true, found = map(list, zip(*pairs, strict=True))
    classes, counts = row_counts(*([[(name,)] for name in part] for part in (true, found)))
    ours = precision_recall_f1(summed(counts))
    theirs = precision_recall_fscore_support(true, found, labels=classes, zero_division=0)
    np.testing.assert_allclose(ours, theirs[:3])


def test_a_classifier_is_scored_and_its_surest_errors_are_shown():
    X = [f"text {i} {EVIL}" for i in range(6)]
    y, answers = ["spam", "ham", "ham", "ham", "spam", "ham"], ["spam"] * 2 + ["ham"] * 4
    page = html_report(Fixed("classification", answers), X, y, title=EVIL)
    table = cells(page)
    want = precision_recall_fscore_support(y, answers, labels=["ham", "spam"])
    for i, name in enumerate(("ham", "spam")):
        expected = [want[m][i] for m in range(3)]
        assert [float(c) for c in table[name][:3]] == pytest.approx(expected, abs=6e-4)
        assert int(table[name][4]) == want[3][i]
    assert float(table["accuracy"][2]) == round(accuracy_score(y, answers), 3)
    assert page.count('class="example"') == 2
    names = ["precision", "recall", "F1", "F1, 95 %"]
    assert table["class"][:4] == names  # what a phone shows without scrolling
    pictures = re.findall(r'<img alt="(.*?)"', page)
    assert pictures == ["Confusion matrix"]
    assert shown("ham", "spam") in page


def test_a_tagger_is_scored_by_spans_and_its_worst_sentences_are_shown():
    X = [["Ann", EVIL, "rests"], ["Bo", "in", "Rome"], ["it", "rains", "."]]
    y = [["B-PER", "I-PER", "O"], ["B-PER", "O", "B-LOC"], ["O", "O", "O"]]
    answers = [["B-PER", "I-PER", "O"], ["B-LOC", "O", "O"], ["O", "B-LOC", "O"]]
    page = html_report(Fixed("tagging", answers), X, y)
    want = span_precision_recall_fscore_support(y, answers, average="micro")
    assert [float(c) for c in cells(page)["micro average"][:3]] == pytest.approx(want[:3], abs=6e-4)
    assert page.index("row 1, 2 wrong") < page.index("row 2, 1 wrong")
    assert "row 0" not in page
    assert '<mark style="' in page


def test_spans_of_the_page_have_their_scores():
    class Scoring(Fixed):
        def predict_spans(self, X):
            assert X == [["Bo", "in", "Rome"]]  # only what is shown
            return [[ScoredSpan("LOC", 0, 1, 0.756), ScoredSpan("LOC", 2, 3, 0.123)]]

    X, y = [["it", "rains", "."], ["Bo", "in", "Rome"]], [["O"] * 3, ["B-PER", "O", "B-LOC"]]
    answers = [["O"] * 3, ["B-LOC", "O", "O"]]
    page = html_report(Scoring("tagging", answers), X, y)
    assert "Bo <small><b>LOC</b> 0.76</small>" in page
    assert " 0.12<" not in page  # a span that the given predictions lack
    page = html_report(Scoring("tagging", y), X, y)
    assert "all rows are right" in page


def test_nested_spans_and_answers_have_a_page():
    spans = [[("ORG", 0, 3), ("LOC", 2, 3)]]
    page = html_report(Fixed("mrc-ner", [[("ORG", 0, 3)]]), [["Bank", "of", EVIL]], spans)
    assert cells(page)["LOC"][:2] == ["0.000", "0.000"]
    X = [("Who?", f"Ann sings. {EVIL}"), ("When?", "At noon."), ("Why?", "No reason.")]
    y = [[(0, "Ann")], [(3, "noon")], []]
    page = html_report(Fixed("qa", ["Ann", "at", "reason"]), X, y)
    table = cells(page)
    assert table["all"][0] == "0.333"
    assert table["with answer"][4] == "2"
    assert shown("noon", "at") in page
    assert shown("no answer", "reason") in page


@pytest.mark.parametrize("task", ["classification", "tagging", "mrc-ner", "qa"])
def test_the_page_is_whole_asks_for_nothing_and_escapes_the_data(task):
    X, y = {
        "classification": ([EVIL, "b"], [EVIL, "ham"]),
        "tagging": ([[EVIL], ["b"]], [[f"B-{EVIL}"], ["O"]]),
        "mrc-ner": ([[EVIL], ["b"]], [[(EVIL, 0, 1)], []]),
        "qa": ([(EVIL, EVIL), ("a", "b")], [[(0, EVIL)], []]),
    }[task]
    wrong = {
        "classification": ["ham", EVIL],
        "tagging": [["O"], [f"B-{EVIL}"]],
        "mrc-ner": [[], [(EVIL, 0, 1)]],
        "qa": ["b", EVIL],
    }[task]
    page = html_report(Fixed(task, wrong), X, y, title=EVIL)
    assert EVIL not in page

    class Check(html.parser.HTMLParser):
        open_tags: list[str] = []

        def handle_starttag(self, tag, attrs):
            assert tag != "script"
            for name, value in attrs:
                assert name not in ("src", "href") or value.startswith("data:image/svg+xml;base64,")
            if tag not in ("meta", "img"):
                self.open_tags.append(tag)

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    check = Check()
    check.feed(page)
    assert check.open_tags == []


def test_true_rows_may_hold_no_entity():
    page = html_report(Fixed("tagging", [["B-A"]]), [["x"]], [["O"]])
    assert cells(page)["A"] == ["0.000", "0.000", "0.000", "0.000 to 0.000", "0", "1"]
    page = html_report(Fixed("mrc-ner", [[("A", 0, 1)]]), [["x"]], [[]])
    assert cells(page)["micro average"][5] == "1"
    page = html_report(Fixed("tagging", [["O"]]), [["x"]], [["O"]])
    assert "all rows are right" in page


def test_predictions_at_hand_are_not_made_again():
    tagger = Fixed("tagging", None)
    page = html_report(tagger, [["x"]], [["B-A"]], y_pred=[["B-A"]])
    assert cells(page)["A"][2] == "1.000"
    with pytest.raises(ValueError, match="y holds 1 row and y_pred 2"):
        html_report(tagger, [["x"]], [["B-A"]], y_pred=[["B-A"], []])


@pytest.mark.parametrize(
    ("task", "X", "y"),
    [
        ("tagging", [["x"]], [["O", "O"]]),
        ("classification", ["a", "b"], ["a"]),
        ("qa", [("Who?", "Ann.")], [[], []]),
    ],
)
def test_wrong_answers_are_refused_before_anything_is_predicted(task, X, y):
    class Never(Fixed):
        def predict(self, X):
            raise AssertionError

    with pytest.raises(ValueError, match="y"):
        html_report(Never(task, None), X, y)


def test_intervals_are_those_of_drawn_rows():
    counts = np.random.default_rng(0).integers(0, 3, (40, 6))
    sums = _resampled(counts)
    draw = np.random.default_rng(2)
    naive = np.array([counts[draw.integers(40, size=40)].sum(axis=0) for _ in range(4000)])
    np.testing.assert_allclose(sums.mean(axis=0), naive.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(sums.std(axis=0), naive.std(axis=0), rtol=0.12)
    assert _interval(np.arange(101)) == "2.500 to 97.500"


def test_a_model_in_a_tuner_a_pipeline_or_a_search_has_a_page(tiny_backbone):
    from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
    from sklearn.model_selection import TunedThresholdClassifierCV as Tuned
    from sklearn.pipeline import make_pipeline

    from skdice import BiasTunedClassifier, DiceSequenceClassifier

    X, y = ["win money", "lunch today", "free prize", "rain"] * 2, [r"$\frac$", "ham"] * 4
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(X, y)
    search = GridSearchCV(model, {"lr": [1e-3]}, cv=2, scoring="accuracy").fit(X, y)
    tuned = BiasTunedClassifier(model, cv="prefit").fit(X, y)
    half = FixedThresholdClassifier(model, pos_label="ham", threshold=0.3).fit(X, y)
    best = Tuned(model, scoring="accuracy", cv=2).fit(X, y)
    for outer in (search, tuned, half, best, make_pipeline(model)):
        page = html_report(outer, X, y, title="a\x1b[31m")
        assert "DiceSequenceClassifier" in page
        assert "loss ce_dice" in page
        assert "\x1b" not in page
    with pytest.raises(TypeError, match="title=5"):
        html_report(model, X, y, title=5)


def test_printed_spans_hold_no_escape_sequence():
    from skdice.inspection import show_tags

    page = str(show_tags(["An\x1b]0;x\x07n", "a\nb"], ["B-P\x1b[2J", "O"]))
    assert not set("\x1b\x07\n") & set(page)
    assert "An" in page


def test_the_page_says_what_the_decision_was_tuned_for():
    X = ["win a free prize now", "call now", "lunch today", "the bus is late"] * 3
    y = ["spam", "spam", "ham", "ham"] * 3
    inner = TfidfClassifier(random_state=0).fit(X, y)
    assert "tuned for" not in html_report(inner, X, y)
    for scoring, words in (
        ("auto", "F1"),
        ("f1_macro", "F1, macro"),
        (AlertBudget(500, confidence=0.5), "the highest recall at 500 alerts per 1,000 rows"),
        ("neg_log_loss", "calibrated probabilities"),
        (f1_of_spam, "f1_of_spam"),
    ):
        tuned = BiasTunedClassifier(inner, cv="prefit", scoring=scoring).fit(X, y)
        above = f"; decision tuned for {words} (positive above a probability of "
        page = html_report(tuned, X, y)
        assert f"{above}{tuned.threshold_:.2f}); intervals" in page
        assert "Best F1" not in page
    outer = BiasTunedClassifier(TfidfClassifier(random_state=0), cv=2, scoring=f1_of_spam)
    search = GridSearchCV(outer, {"n_bootstraps": [2]}, cv=2).fit(X, y)
    assert "; decision tuned for f1_of_spam (" in html_report(search, X, y)


def f1_of_spam(true, predicted):
    return f1_score(true, predicted, pos_label="spam")


def test_baselines_have_a_page():
    X = ["win a free prize now", "call now", "lunch today", "the bus is late"] * 3
    y = ["spam", "spam", "ham", "ham"] * 3
    tfidf = TfidfClassifier(random_state=0)
    for model in (tfidf.fit(X, y), BiasTunedClassifier(tfidf).fit(X, y)):
        page = html_report(model, X, ["ham", *y[1:]])
        assert "TfidfClassifier, 12 rows" in page
        assert shown("ham", "spam") in page
    pytest.importorskip("pycrfsuite")
    X = [text.split() for text in X]
    y = [["O"] * (len(row) - 1) + ["B-X"] for row in X]
    field = CRFTagger()
    for model in (field.fit(X, y), BiasTunedTagger(field).fit(X, y)):
        page = html_report(model, X, [["B-X", *y[0][1:]], *y[1:]])
        assert "CRFTagger, 12 rows" in page
        assert "row 0, 1 wrong" in page
    with pytest.raises(TypeError, match="holds no fitted estimator of skdice"):
        html_report(LogisticRegression().fit([[0], [1]], [0, 1]), [[0]], [0])


@pytest.mark.parametrize("several", [False, True])
def test_rows_that_are_left_to_a_person_are_refused(tiny_backbone, several):
    X = ["free money", "lunch today", "win a prize", "the bus"] * 4
    y = [["a"], ["b"], ["a", "b"], []] * 4 if several else [1, 0] * 8
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    tuned = BiasTunedClassifier(model, cv=0.5, reject=0.4, reject_label="?" if several else -1)
    tuned.fit(X, y)
    tuned.reject_margin_ = 1e9
    with pytest.raises(ValueError, match=r"leaves 16 rows to a person, .* give the other rows"):
        html_report(tuned, X, y)
    tuned.reject_margin_ = 1e-9  # it leaves none
    assert "accuracy" in html_report(tuned, X, y) or several
