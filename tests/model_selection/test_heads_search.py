"""Searches of text estimators in which heads on the frozen encoder stand for full fits."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.cli.tune import report, trials_table
from skdice.engine import vectors
from skdice.metrics import span_f1_score
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.full_fits import FullFits
from skdice.model_selection.heads import data as heads_data
from skdice.model_selection.heads import finalists
from skdice.model_selection.records import cv_results
from tests.data import KINDS_OF_MESSAGES as LABELS
from tests.data import MESSAGES as TEXTS
from tests.data import SENTENCES, TAGS
from tests.fits import never_fitted

SPACE = loss_space("tversky")


@pytest.fixture
def classifier(tiny_backbone):
    return DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)


@pytest.fixture
def tagger(tiny_backbone):
    return DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)


def search(estimator, space=SPACE, **params):
    settings = dict(
        n_trials=6, trials_at_once=3, n_finalists=2, cv=2, random_state=0, strategy="shared"
    )
    return LossSearchCV(estimator, space, **{**settings, **params})


def spam_f1(model, texts, labels):
    return f1_score(np.asarray(labels) == "spam", model.predict(texts) == "spam")


def test_vectors_are_those_of_the_encoder(classifier, tagger):
    fitted = DiceSequenceClassifier(**{**classifier.get_params(), "frozen": "encoder"})
    fitted.fit(TEXTS, LABELS)
    head = fitted.net_.module_.output_layer
    with torch.no_grad():
        logits = head(torch.from_numpy(classifier.frozen_vectors(TEXTS)).float()).numpy()
    np.testing.assert_allclose(softmax(logits, axis=1), fitted.predict_proba(TEXTS), atol=1e-5)
    assert not hasattr(classifier, "net_")

    frozen = DiceTokenClassifier(**{**tagger.get_params(), "frozen": "encoder"}).fit(
        SENTENCES, TAGS
    )
    vectors = tagger.frozen_vectors(SENTENCES)
    with torch.no_grad():
        rows = (
            frozen.net_.module_.output_layer(torch.from_numpy(vectors)).double().softmax(1).numpy()
        )
    np.testing.assert_allclose(
        rows, np.concatenate(list(frozen.predict_proba(SENTENCES))), atol=1e-5
    )


def test_a_frozen_encoder_has_the_same_vectors(classifier, tagger):
    X = ["free money", "lunch today"]
    words = [text.split() for text in X]
    want = classifier.frozen_vectors(X), tagger.frozen_vectors(words)
    for model in (classifier, tagger):
        model.set_params(frozen="encoder")
    np.testing.assert_array_equal(classifier.frozen_vectors(X), want[0])
    np.testing.assert_array_equal(tagger.frozen_vectors(words), want[1])
    assert classifier.frozen == "encoder"


def test_large_arrays_lie_in_a_file(classifier, tagger, monkeypatch):
    asked = (classifier, TEXTS), (tagger, SENTENCES)
    small = [estimator.frozen_vectors(rows) for estimator, rows in asked]
    monkeypatch.setattr(vectors, "IN_MEMORY", 0)
    monkeypatch.setattr(vectors, "BLOCK", 3)
    large = [estimator.frozen_vectors(rows) for estimator, rows in asked]
    for found, expected in zip(large, small, strict=True):
        assert isinstance(found, np.memmap)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    found = search(tagger).fit(SENTENCES, TAGS)
    monkeypatch.undo()
    other = search(tagger).fit(SENTENCES, TAGS)
    np.testing.assert_allclose(
        found.cv_results_["mean_shared_score"], other.cv_results_["mean_shared_score"], atol=1e-6
    )


def test_the_best_heads_are_fitted_in_full(classifier):
    found = search(classifier, scoring=spam_f1).fit(TEXTS, LABELS)
    results = found.cv_results_
    assert found.strategy_ == "shared"
    assert not hasattr(found, "agreement_")
    assert len(results["params"]) == 6
    full = np.flatnonzero(results["state"] == "COMPLETE")
    assert sorted(results["state"]) == ["COMPLETE"] * 2 + ["SHARED"] * 4
    heads = results["mean_shared_score"]
    assert set(full) == set(np.argsort(-heads, kind="stable")[:2])
    # Their scores are those of cross-validation; the others have none.
    for i in full:
        one = DiceSequenceClassifier(**classifier.get_params()).set_params(**results["params"][i])
        scores = cross_validate(one, TEXTS, LABELS, cv=StratifiedKFold(2), scoring=spam_f1)
        np.testing.assert_allclose(
            [results[f"split{k}_test_score"][i] for k in range(2)], scores["test_score"]
        )
    assert np.isnan(np.delete(results["mean_test_score"], full)).all()
    assert found.best_index_ in full
    assert found.best_score_ == results["mean_test_score"][found.best_index_]
    assert set(found.predict(TEXTS)) <= {"ham", "spam"}


def test_a_head_is_a_classifier_on_scaled_vectors(classifier):
    splits = list(StratifiedKFold(2).split(TEXTS, LABELS))
    found = search(classifier, scoring=spam_f1).fit(TEXTS, LABELS)
    vectors = classifier.frozen_vectors(TEXTS)
    Z = vectors * (heads_data.NORM / np.linalg.norm(vectors, axis=1).mean())
    labels = LABELS
    for params, score in zip(
        found.cv_results_["params"], found.cv_results_["mean_shared_score"], strict=True
    ):
        head = DiceClassifier(
            max_epochs=classifier.max_epochs,
            lr=heads_data.LR,
            batch_size=heads_data.BATCH_SIZE[False],
            random_state=0,
        ).set_params(**params)
        solo = [spam_f1(head.fit(Z[a], labels[a]), Z[b], labels[b]) for a, b in splits]
        assert score == pytest.approx(np.mean(solo))


def test_heads_learn_from_fewer_rows_than_columns(classifier):
    rng = np.random.default_rng(0)
    y = np.array(["ham", "spam"])[(rng.random(600) < 0.15).astype(int)]
    vectors = rng.normal(0.1, 0.3, (600, 384))
    vectors[y == "spam", :24] += 0.7

    class WithVectors(DiceSequenceClassifier):
        def frozen_vectors(self, texts):
            return vectors.copy()

    split = np.arange(100), np.arange(100, 600)
    model = WithVectors(**classifier.get_params()).set_params(max_epochs="auto")
    rows = heads_data.HeadData(model, [str(i) for i in range(600)], y)
    known = y[split[1]] == "spam"
    rival = LogisticRegression(max_iter=1000).fit(vectors[:100], y[:100]).predict(vectors[100:])
    models = [DiceSequenceClassifier(loss=loss) for loss in ("ce", "tversky", "dsc")]
    (heads,) = rows.fit(models, [split[0]])
    for head in rows.predict(heads, split[1]):
        # Each ranks the rows nearly right. At a half "ce" finds fewer positives (F1 0.91), since it
        # begins at the classes' shares, as a full fit does.
        order = average_precision_score(known, head.predict_proba(None)[:, 1])
        assert order > 0.99
        score = f1_score(known, head.predict(None) == "spam")
        assert score > f1_score(known, rival == "spam") - 0.1


@pytest.mark.parametrize(
    ("means", "n", "expected"),
    [
        # All within 0.1 / sqrt(2) of the best: half by rank, then the farthest, then between.
        ([0.50, 0.49, 0.48, 0.47, 0.46], 3, {0, 1, 4}),
        ([0.50, 0.49, 0.48, 0.47, 0.46, 0.45, 0.44], 4, {0, 1, 5, 3}),  # 6 is not level
        ([0.50, 0.49, 0.48], 2, {0, 2}),
        # Two are level, so the third is the next best.
        ([0.50, 0.10, 0.48, 0.20, 0.15], 3, {0, 2, 3}),
        ([0.10, 0.20, 0.90, 0.20, 0.10], 1, {2}),
        ([0.10, 0.20], 3, {0, 1}),
    ],
)
def test_finalists_are_level_and_unlike_each_other(means, n, expected):
    settings = [{"loss__alpha": 0.1 * i} for i in range(len(means))]
    scores = np.array(means)[:, None] + 0.05 * np.array([-1, 1])
    found = finalists.finalists(settings, scores, n)
    assert found[0] == np.argmax(means)
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_finalists_are_of_more_than_one_loss():
    settings = [{"loss": "dice"}, {"loss": "dice"}, {"loss": "focal", "loss__gamma": 2.0}]
    scores = np.array([[0.5, 0.7], [0.5, 0.7], [0.5, 0.65]])
    assert finalists.finalists(settings, scores, 2) == [0, 2]


def test_heads_of_taggers_are_scored_by_spans(tagger):
    scoring = {"f1": make_scorer(span_f1_score), "own": lambda m, X, y: m.score(X, y)}
    found = search(tagger.set_params(max_epochs=40), scoring=scoring, refit="f1", cv=KFold(2))
    results = found.fit(SENTENCES, TAGS).cv_results_
    np.testing.assert_allclose(results["mean_shared_f1"], results["mean_shared_own"])
    assert results["mean_shared_f1"].max() > 0.5  # the heads have learnt something
    assert (results["state"] == "COMPLETE").sum() == 2
    assert [len(tags) for tags in found.predict(SENTENCES)] == [len(row) for row in SENTENCES]


@pytest.mark.slow
def test_auto_compares_heads_with_full_fits(classifier, monkeypatch, capsys):
    seen = []

    def agreement(one, other):
        seen.append((list(one), list(other)))
        return answer

    monkeypatch.setattr(finalists, "agreement", agreement)
    settings = dict(strategy="auto", n_trials=16, trials_at_once=8, scoring=spam_f1)
    answer = 0.9
    found = search(classifier, **settings).fit(TEXTS, LABELS)
    assert (found.strategy_, found.agreement_) == ("shared", 0.9)
    # Six of the first eight, and then those of the two best which were not among them.
    assert 6 <= (found.cv_results_["state"] == "COMPLETE").sum() <= 8
    heads, full = seen[0]
    assert len(heads) == len(full) == 6
    table = found.cv_results_["mean_shared_score"][:8]
    assert set(heads) <= set(table)
    assert max(table) in heads
    assert min(table) in heads

    answer = 0.3
    found = search(classifier, verbose=1, **settings).fit(TEXTS, LABELS)
    assert "Spearman 0.30 over 6 trials" in capsys.readouterr().out
    assert (found.strategy_, found.agreement_) == ("full", 0.3)
    states = found.cv_results_["state"].tolist()
    assert states[:8] == ["COMPLETE"] * 8
    assert states[8:] == ["COMPLETE"] * 8 or "PRUNED" in states[8:]
    # The sampler goes on from full fits alone.
    values = [trial.value for trial in found.study_.trials[:8]]
    np.testing.assert_allclose(values, found.cv_results_["mean_test_score"][:8])


def test_auto_is_full_with_few_trials_or_a_storage(classifier, tmp_path):
    few = search(classifier, strategy="auto", n_trials=2).fit(TEXTS, LABELS)
    assert few.strategy_ == "full"
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    how = dict(storage=storage, study_name="s", timeout=1e-3)
    kept = search(classifier, strategy="auto", n_trials=16, **how).fit(TEXTS, LABELS)
    assert kept.strategy_ == "full"


def test_reasons_against_heads_of_text_estimators(classifier, tagger):
    wide = DiceTokenClassifier(backbone=tagger.backbone, label_all_subwords=True)
    labels = np.eye(2, dtype=int)[[0, 1] * 8]
    for estimator, space, rows, y, message in (
        (
            classifier,
            {"max_epochs": [1, 2]},
            TEXTS,
            LABELS,
            "'max_epochs' is searched",
        ),
        (wide, SPACE, SENTENCES, TAGS, "label_all_subwords=True"),
        (classifier, SPACE, TEXTS, labels, "0/1 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            search(estimator, space).fit(rows, y)


def test_a_loss_that_fails_keeps_its_error(classifier):
    space = {"loss": ["ce"], "loss__class_weight": [[1.0, 2.0], [1.0, 2.0, 3.0]]}
    with pytest.warns(FitFailedWarning, match="class_weight"):
        found = search(classifier, space, scoring=spam_f1).fit(TEXTS, LABELS)
    errors = [t.user_attrs["record"]["error"] for t in found.study_.trials]
    bad = [len(p["loss__class_weight"]) == 3 for p in found.cv_results_["params"]]
    assert [error is not None for error in errors] == bad
    assert found.best_params_["loss__class_weight"] == [1.0, 2.0]


def test_a_scorer_that_fails_on_a_head_costs_its_trial_only(classifier):
    calls = []

    def scorer(model, texts, labels):
        calls.append(model)
        model.predict_proba(texts)  # so that no two heads are scored as one
        if len(calls) == 3:
            raise ValueError("no score")
        return spam_f1(model, texts, labels)

    with pytest.warns(UserWarning, match=r"could not be scored .*no score"):
        found = search(classifier, scoring=scorer).fit(TEXTS, LABELS)
    states = list(found.cv_results_["state"])
    assert states.count("FAIL") == 1
    assert states.count("COMPLETE") == 2


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_heads_predict_other_rows_than_they_are_scored_on(kind, request):
    def turned(model, rows, labels):
        mine, others = model.predict_proba(rows), model.predict_proba(list(rows)[::-1])[::-1]
        for one, other in zip(mine, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)
        asked.append(np.concatenate(list(mine)).std())
        return 0.5

    asked, data = [], {"classifier": (TEXTS, LABELS), "tagger": (SENTENCES, TAGS)}
    model = request.getfixturevalue(kind)
    search(model, scoring=turned, refit=False, n_finalists=1).fit(*data[kind])
    assert min(asked) > 0


def test_a_study_keeps_the_full_fits_of_its_finalists(classifier, tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    how = dict(storage=storage, study_name="s", scoring=spam_f1, refit=False)
    whole = search(classifier, n_trials=7, scoring=spam_f1, refit=False).fit(TEXTS, LABELS)
    first = search(classifier, n_trials=6, **how).fit(TEXTS, LABELS)
    fitted = first.cv_results_["state"] == "COMPLETE"
    scores = first.cv_results_["mean_test_score"]
    more = search(classifier, n_trials=7, **how).fit(TEXTS, LABELS)
    assert len(more.cv_results_["params"]) == 7
    np.testing.assert_array_equal(more.cv_results_["mean_test_score"][:6][fitted], scores[fitted])
    assert more.best_score_ >= first.best_score_
    # The finalists of all heads are fitted, as at one go.
    kept = more.cv_results_["state"] == "COMPLETE"
    assert (kept | (whole.cv_results_["state"] != "COMPLETE")).all()
    unfitted = never_fitted(DiceSequenceClassifier)(**classifier.get_params())
    again = search(unfitted, n_trials=7, **how).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.cv_results_["state"], more.cv_results_["state"])
    assert (again.best_params_, again.best_score_) == (more.best_params_, more.best_score_)


def test_agreement_and_spread():
    assert finalists.agreement([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert finalists.agreement([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert finalists.agreement([1, 1, 1], [3, 2, 1]) == 0
    assert finalists.spread_over([0.1, 0.9, 0.5, 0.3, 0.7], 3) == [1, 2, 0]


@pytest.mark.parametrize("scoring", [spam_f1, {"f1": spam_f1}])
def test_an_interrupt_before_a_full_fit_leaves_the_best_head(classifier, tmp_path, capsys, scoring):
    class Interrupted(DiceSequenceClassifier):
        def fit(self, X, y):
            raise KeyboardInterrupt

    refit = "f1" if isinstance(scoring, dict) else True
    model = Interrupted(**classifier.get_params()).set_params(max_epochs=9)
    found = search(model, scoring=scoring, refit=refit)
    with pytest.raises(KeyboardInterrupt):
        found.fit(TEXTS, LABELS)
    results = found.cv_results_
    heads = results["mean_shared_f1" if refit == "f1" else "mean_shared_score"]
    assert set(results["state"]) == {"SHARED"}
    assert found.best_score_ == heads.max() > 0
    assert found.best_params_ == results["params"][found.best_index_]
    assert heads[found.best_index_] == heads.max()
    if refit is True:
        report(found, found.n_trials, tmp_path)
        assert "best (of heads: no full fit ended): {'loss'" in capsys.readouterr().out
        best = json.loads((tmp_path / "trials.json").read_text())["best"]
        assert best == {"params": found.best_params_, "shared_f1": found.best_score_}


@pytest.mark.parametrize("strategy", ["auto", "shared"])
def test_after_the_timeout_one_full_fit_ends_the_search(classifier, strategy):
    how = dict(strategy=strategy, n_trials=16, trials_at_once=8, scoring=spam_f1)
    found = search(classifier, timeout=1e-3, **how).fit(TEXTS, LABELS)
    heads = found.cv_results_["mean_shared_score"]
    full = found.cv_results_["state"] == "COMPLETE"
    assert len(heads) == 8
    assert heads[full].tolist() == [heads.max()]
    assert full[found.best_index_]
    assert not hasattr(found, "agreement_")
    assert set(found.predict(TEXTS)) <= {"ham", "spam"}


def test_after_the_timeout_a_full_fit_that_fails_is_not_the_last(classifier):
    calls = []

    class FailsFirst(DiceSequenceClassifier):
        def fit(self, X, y):
            calls.append(self.loss)
            if len(calls) == 1:
                raise ValueError("no room")
            return super().fit(X, y)

    model = FailsFirst(**classifier.get_params())
    with pytest.warns(FitFailedWarning, match="no room"):
        found = search(model, timeout=1e-3, n_finalists=3, scoring=spam_f1).fit(TEXTS, LABELS)
    assert sorted(found.cv_results_["state"]) == ["COMPLETE", "FAIL", "SHARED"]


def n_full_fits(study):
    return sum(name.startswith("full:") for name in study.user_attrs)


def test_full_fits_are_seen_as_they_run(classifier, capsys):
    seen, tables = [], []

    def callback(study, trial):
        seen.append((trial.number, trial.state.name, trial.value, n_full_fits(study)))
        tables.append(cv_results(study, ["score"], 2))
        study.stop()  # no more trials; the finalists run nonetheless

    how = dict(n_trials=16, trials_at_once=6, callbacks=[callback], verbose=1, n_finalists=3)
    found = search(classifier, scoring=spam_f1, **how).fit(TEXTS, LABELS)
    results = found.cv_results_
    assert [number for number, *_ in seen[:6]] == list(range(6))
    assert [value for *_, value, _ in seen[:6]] == list(results["mean_shared_score"])
    assert [done for *_, done in seen] == [0] * 6 + [1, 2, 3]
    for number, state, value, _ in seen[6:]:
        assert (state, value) == ("COMPLETE", results["mean_test_score"][number])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "16 trials of heads on 2 folds"
    assert lines[1].startswith("trial 6 of 16, best ")
    assert "3 trials again, fitted in full" in lines
    assert f"full fit 3 of 3, best {results['mean_test_score'][found.best_index_]:.3f}" in lines
    # The live table says which scores are of heads.
    headings = [[str(column.header) for column in trials_table(t, 16).columns] for t in tables]
    assert headings == [["trial", "F1, %", "shared, %", "parameters"]] * 9
    assert trials_table(tables[5], 16, "about 2 s left").title == (
        "6 of 16 trials: 6 shared, about 2 s left"
    )
    assert "1 complete" in str(trials_table(tables[6], 16).title)
    assert np.isnan(tables[5]["mean_test_score"]).all()
    np.testing.assert_array_equal(tables[8]["mean_test_score"], results["mean_test_score"])
    assert tables[8]["params"] == results["params"]


@pytest.mark.parametrize(("timeout", "parts"), [(None, [2, 1]), (1e-3, [2])])
def test_full_fits_run_as_many_at_a_time_as_there_are_jobs(classifier, monkeypatch, timeout, parts):
    asked = []

    def run(self, settings, trials=()):
        asked.append(len(settings))
        return [self.run_one(params) for params in settings]  # not in other processes

    monkeypatch.setattr(FullFits, "run", run)
    how = dict(n_jobs=2, n_finalists=3, timeout=timeout, trials_at_once=6)
    found = search(classifier, scoring=spam_f1, **how).fit(TEXTS, LABELS)
    assert asked == parts
    assert (found.cv_results_["state"] == "COMPLETE").sum() == sum(parts)
