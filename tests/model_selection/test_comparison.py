"""Comparisons: what a row trains, what is kept, and what is refused before any work."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine.recipe import epochs_for
from skdice.inspection import ComparisonDisplay
from skdice.losses import TverskyLoss
from skdice.model_selection import compare_losses
from skdice.model_selection.candidates import Candidate
from skdice.model_selection.comparison import Comparison
from skdice.model_selection.intervals import F1_WITHOUT, scores_and_parts
from tests.fits import lengths_in, never_fitted

NUMBERS = np.random.default_rng(0).normal(size=(60, 3))
CLASSES = (NUMBERS[:, 0] > 0.8).astype(int)
DATA = {"X_test": NUMBERS, "y_test": CLASSES}
LINEAR = DiceClassifier(max_epochs=2)


# ---- the same number of updates


@pytest.mark.filterwarnings("ignore:the validation sentences hold no entity")
@pytest.mark.parametrize("early_stopping", [False, True])
def test_sentences_of_several_windows_are_counted_as_fit_counts_them(
    tiny_backbone, set_recipe, early_stopping
):
    set_recipe(UPDATES=25)
    X = [["anna", "met", "bob", "in", "rome"] * (20 if i < 6 else 1) for i in range(20)]
    y = [["O"] * len(row) for row in X]
    for i in range(20):
        y[i][0] = ["B-PER", "O", "B-ORG", "O", "O"][i % 5]
    made = []
    tagger = DiceTokenClassifier(
        backbone=tiny_backbone, batch_size=4, random_state=0, early_stopping=early_stopping
    )
    tagger.set_params(loss="ce", callbacks=[lengths_in(made)]).fit(X, y)
    assert tagger.max_epochs_ != epochs_for(tagger, len(y))  # there are more windows than sentences
    rows = ["ce", "ce + TagOverSampler", "ce + BackgroundUnderSampler"]
    found = compare_losses(tagger, X, y, X_test=X, y_test=y, losses=rows, seeds=1)
    alone, plain, *others = made
    assert plain == alone
    assert found.settings["max_epochs"] == alone[0]
    for epochs, updates in others:
        assert abs(updates - alone[1]) <= updates / epochs / 2


def test_long_texts_are_counted_as_fit_counts_them(tiny_backbone, set_recipe):
    X = ["win a free prize now " * (16 if i % 2 else 1) for i in range(20)]
    y = ["spam"] * 4 + ["ham"] * 16
    classifier = DiceSequenceClassifier(backbone=tiny_backbone, batch_size=4, random_state=0)
    set_recipe(UPDATES=10)
    made = []
    classifier.set_params(callbacks=[lengths_in(made)]).fit(X, y)
    rows = ["ce_dice", "ce + RandomUnderSampler"]
    compare_losses(classifier, X, y, X_test=X, y_test=y, losses=rows, seeds=1)
    alone, plain, under = made
    assert plain == alone
    assert under == (8, 16)


# ---- without test rows


def test_without_test_rows_a_fifth_is_held_out_in_proportion_by_random_state(monkeypatch):
    tested = []

    def scores(fitted, X, y):
        tested.append((X, y))
        return scores_and_parts(fitted, X, y)

    monkeypatch.setattr("skdice.model_selection.comparison.scores_and_parts", scores)
    for model in (LINEAR, DiceClassifier(max_epochs=2, random_state=1)):
        found = compare_losses(model, NUMBERS, CLASSES, losses=["ce", "dice"], seeds=1)
        assert found.settings["n_train"] == 48
        assert found.settings["n_test"] == 12
    held = train_test_split(NUMBERS, CLASSES, test_size=12, stratify=CLASSES, random_state=0)
    for X, y in tested[:2]:
        assert np.array_equal(X, held[1])
        assert np.array_equal(y, held[3])
    assert not np.array_equal(tested[2][0], tested[0][0])
    with pytest.raises(ValueError, match="X_test and y_test belong together"):
        compare_losses(LINEAR, NUMBERS, CLASSES, X_test=NUMBERS)


# ---- what was measured is kept


def test_rows_and_seeds_that_are_not_asked_for_again_are_kept(tmp_path, capsys):
    path, made = tmp_path / "c.json", []

    def run(losses, seeds):
        found = compare_losses(
            LINEAR, NUMBERS, CLASSES, losses=losses, seeds=seeds, resume_from=path, verbose=1,
            **DATA,
        )  # fmt: skip
        made.extend(line.split(",")[0] for line in capsys.readouterr().out.splitlines())
        return found

    tversky = TverskyLoss(alpha=0.25, beta=0.75)
    first = run(["ce", tversky, "dice + tuned"], 2)
    scores = {row.label: row.values("f1") for row in first.rows}
    made.clear()
    second = run(["focal"], 1)
    assert made == ["focal"]
    assert [row.label for row in second.rows] == ["focal", *scores]
    for found in (second, run(["focal"], 1), run([tversky, "ce"], 2)):
        kept = {row.label: row.values("f1") for row in found.rows if row.label != "focal"}
        assert kept == scores
    assert made == ["focal"]
    assert second.rows[-1].tuned
    assert len(second.to_frame()) == 4
    written = json.loads(path.read_text())
    assert [row["label"] for row in written["rows"]] == ["focal", *scores]
    # A file of other data, of other settings, or of none is refused.
    how = {"losses": ["ce"], "seeds": 1, "resume_from": path}
    others = (LINEAR, {**DATA, "y_test": CLASSES[::-1]}), (clone(LINEAR).set_params(lr=0.5), DATA)
    for model, data in others:
        with pytest.raises(ValueError, match=r"resume_from=.* of other data, settings or versions"):
            compare_losses(model, NUMBERS, CLASSES, **how, **data)
    for text in ("[" * 100_000, "{}", '{"settings": {}, "rows": [{}]}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"resume_from=.*holds no comparison"):
            compare_losses(LINEAR, NUMBERS, CLASSES, **how, **DATA)


def test_a_row_of_a_file_is_the_same_model_or_is_refused(tmp_path):
    path = tmp_path / "c.json"

    def run(losses):
        how = {"losses": losses, "seeds": 1, "resume_from": path}
        return compare_losses(LINEAR, NUMBERS, CLASSES, **how, **DATA)

    run({"mine": TverskyLoss(alpha=0.3, beta=0.7), "trees": RandomForestClassifier(5)})
    run({"mine": TverskyLoss(alpha=0.3, beta=0.7), "trees": RandomForestClassifier(5)})
    before = path.read_bytes()
    for name, other in (("mine", "ce"), ("trees", RandomForestClassifier(6)), ("ce", "dice")):
        if name == "ce":
            run({"ce": "ce"})
            before = path.read_bytes()
        with pytest.raises(ValueError, match=f"holds a row '{name}' of another loss or estimator"):
            run({name: other})
        assert path.read_bytes() == before


# ---- what cannot be trained is refused before anything is


ONE, TWO = [1] + [0] * 19, [1, 1] + [0] * 3


@pytest.mark.parametrize(
    ("estimator", "X", "y", "row"),
    [
        *((DiceSequenceClassifier, ["win"] * len(y), y, "ce + tuned") for y in (ONE, TWO)),
        (DiceSequenceClassifier, ["win"] * 5, TWO, "ce + RandomOverSampler + tuned"),
        (DiceSequenceClassifier, ["win"] * 20, ONE, "tfidf + tuned"),
        (DiceTokenClassifier, [["anna", "met"]], [["B-PER", "O"]], "dice + tuned"),
        (DiceTokenClassifier, [["anna"], ["met"]], [["B-PER"], ["O"]], "dice + tuned"),
        (DiceEntityRecognizer, ["anna", "met"], [[(0, 4, "PER")], []], "dice + tuned"),
        (DiceClassifier, [[0.0], [1.0], [2.0]], [0, 0, 1], "dice + tuned"),
    ],
)
def test_a_tuned_row_needs_rows_to_hold_out(estimator, X, y, row):
    nowhere = {} if estimator is DiceClassifier else {"backbone": "no/such-model"}
    model, how = never_fitted(estimator)(**nowhere), dict(losses=["ce", row], seeds=1)
    with pytest.raises(ValueError, match=rf"the row '{re.escape(row)}' is not possible"):
        compare_losses(model, X, y, X_test=X, y_test=y, **how)


def test_a_tuned_row_with_validation_data_needs_none(tiny_backbone):
    X, y = ["win money", *(f"lunch {i}" for i in range(9))], [1] + [0] * 9
    data = {"X_test": X, "y_test": y, "X_val": X, "y_val": y, "seeds": 1}
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1)
    assert compare_losses(model, X, y, losses=["ce + tuned"], **data).rows[0].runs


def test_a_row_of_an_object_keeps_its_name():
    with pytest.raises(ValueError, match="the row 'mine' is not possible"):
        compare_losses(
            LINEAR, NUMBERS, [1] + [0] * 59, X_test=NUMBERS, y_test=[1] + [0] * 59,
            losses={"mine": "ce + tuned"},
        )  # fmt: skip


@pytest.mark.parametrize(
    "y", [np.eye(3, dtype=int).repeat(2, 0), [["a"], ["b"], [], [], ["a"], []]]
)
@pytest.mark.parametrize("row", ["tfidf", "tfidf + tuned"])
def test_several_labels_have_no_row_of_n_grams(y, row):
    X, nowhere = ["win money"] * 6, DiceSequenceClassifier(backbone="no/such-model")
    with pytest.raises(ValueError, match=rf"the row '{row[:5]}.*several labels a row"):
        compare_losses(nowhere, X, y, X_test=X, y_test=y, losses=["ce", row])


def test_compare_samplers_and_tuned_decisions(tiny_backbone):
    X = ["win free money", "lunch today", "the bus was late", "old road", "new school"] * 4
    y = np.array(["spam", "ham", "ham", "ham", "ham"] * 4)
    classifier = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, lr=1e-2)
    held = {"X_val": X[:5], "y_val": y[:5]}
    data = {"X_test": X, "y_test": y, **held}
    rows = ["ce + RandomUnderSampler", "ce + tuned"]
    found = compare_losses(classifier, X, y, losses=["ce+RandomUnderSampler", rows[1]], seeds=[3],
                           **data)  # fmt: skip
    assert [row.label for row in found.rows] == rows
    assert found.measure == "class spam"
    classifier.set_params(loss="ce", random_state=3, pos_label="spam")
    drawn = clone(classifier).set_params(sampler=RandomUnderSampler(random_state=3))
    tuned = BiasTunedClassifier(classifier, random_state=3)
    for row, model in zip(found.rows, (drawn, tuned), strict=True):
        predicted = model.fit(X, y, **held).predict(X)
        assert row.mean("f1") == f1_score(y, predicted, pos_label="spam", zero_division=0)
    for row in ("ce + nope", "ce + tuned + tuned", "ce + numpy", "nope + tuned", "ce + SMOTE"):
        with pytest.raises(ValueError, match=r"row|loss|TransformerFeatures"):
            compare_losses(classifier, X, y, losses=[row], **data)


# ---- estimators of any library


def test_a_dict_names_rows_and_takes_estimators_of_any_library():
    labels = np.where(CLASSES, "spam", "ham")
    trees = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    rows = {"mine": "ce + RandomOverSampler", "trees": trees, "bayes": GaussianNB()}
    found = compare_losses(
        LINEAR, NUMBERS, labels, X_test=NUMBERS, y_test=labels, losses=rows, seeds=[3, 4]
    )
    mine, of_trees, bayes = found.rows
    assert [row.label for row in found.rows] == list(rows)
    assert type(mine.sampler).__name__ == "RandomOverSampler"
    assert found.measure == "class spam"
    for seed, run in zip([3, 4], of_trees.runs, strict=True):
        model = clone(trees).set_params(randomforestclassifier__random_state=seed)
        told = model.fit(NUMBERS, labels).predict(NUMBERS)
        assert run["f1"] == f1_score(labels, told, pos_label="spam")
        assert run["recall"] == recall_score(labels, told, pos_label="spam")
    assert len(bayes.runs) == 1  # nothing in it depends on the seed
    with pytest.raises(TypeError, match="RandomForestClassifier has no evaluate"):
        compare_losses(
            LINEAR, NUMBERS, np.eye(2, dtype=int)[CLASSES], X_test=NUMBERS,
            y_test=np.eye(2, dtype=int)[CLASSES], losses={"trees": RandomForestClassifier(5)},
        )  # fmt: skip


# ---- rows that do not depend on the seed


def test_a_baseline_by_itself_runs_once_and_has_no_spread(tiny_backbone):
    texts = ["free money prize", "lunch today", "see you at six", "the bus was late"] * 6
    labels = ["spam", "ham", "ham", "ham"] * 6
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1)
    rows = ["tfidf", "tfidf + RandomOverSampler", "ce"]
    found = compare_losses(
        model, texts, labels, X_test=texts, y_test=labels, losses=rows, seeds=[3, 4]
    )
    assert [[run["seed"] for run in row.runs] for row in found.rows] == [[3], [3, 4], [3, 4]]
    assert ["±" in line for line in str(found).splitlines()[2:5]] == [False, True, True]


def comparison_of(**scores):
    """A comparison with the F1 of each run and of each part that is left out."""
    rows = []
    for label, runs in scores.items():
        of_runs = [
            {"seed": i, "precision": f1, "f1": f1, F1_WITHOUT: parts}
            for i, (f1, parts) in enumerate(runs)
        ]
        rows.append(Candidate(label, label, runs=of_runs))
    return Comparison("class 1", rows, {}, {})


def test_the_picture_has_the_differences_of_the_table_and_scores_begin_at_half():
    parts = [0.7, 0.72, 0.74]
    found = comparison_of(
        ce=[(0.8, [0.8, 0.81, 0.8]), (0.82, [0.8, 0.81, 0.8])], dice=[(0.71, parts), (0.73, parts)]
    )
    axes = ComparisonDisplay.from_comparison(found).axes_
    assert [axis.get_title() for axis in axes] == ["Precision", "F1", "Difference of F1"]
    assert "to the highest" in axes[-1].get_xlabel()
    apart, *ends = found.behind(found.rows[1])
    drawn = {
        line.get_ydata()[0]: line.get_xdata()
        for line in axes[-1].lines
        if len(line.get_xdata()) == 2
    }
    assert np.allclose(drawn[1], 100 * np.array(ends))
    diamonds = [line.get_xdata()[0] for line in axes[-1].lines if line.get_marker() == "D"]
    assert np.allclose(diamonds, [0, 100 * apart])
    assert [text.get_text() for text in axes[1].texts] == ["81.0", "72.0"]
    low = comparison_of(ce=[(0.8, [0.8, 0.8, 0.8])], dice=[(0.4, [0.4, 0.4, 0.4])])
    high = comparison_of(ce=[(0.8, [0.8, 0.8, 0.8])], dice=[(0.6, [0.6, 0.6, 0.6])])
    begins = [ComparisonDisplay.from_comparison(c).axes_[1].get_xlim()[0] for c in (low, high)]
    assert begins == [0, 50]
