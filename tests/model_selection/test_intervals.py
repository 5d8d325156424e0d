"""How far two rows are apart: the jackknife against a naive loop and a bootstrap."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score

from skdice import DiceClassifier, DiceSequenceClassifier
from skdice.cli._verdict import verdict
from skdice.engine.net import FineTuningNet
from skdice.inspection import ComparisonDisplay
from skdice.model_selection import compare_losses
from skdice.model_selection.candidates import Candidate
from skdice.model_selection.intervals import (
    F1_WITHOUT,
    MOST_PARTS,
    Replayed,
    differences,
    scores_and_parts,
)
from tests.cli import running
from tests.fits import ROWS_OF


class Told:
    """Gives the answers that it was told, once."""

    def __init__(self, answers):
        self.answers, self.n_calls = np.asarray(answers), 0

    def predict(self, X):
        self.n_calls += 1
        return self.answers[np.asarray(X)]

    def evaluate(self, X, y):
        return {"f1": f1_score(y, self.predict(X), zero_division=0)}


def answers(n, seed, error):
    draw = np.random.default_rng(seed)
    y = (draw.random(n) < 0.2).astype(int)
    return y, [np.where(draw.random(n) < error, 1 - y, y) for _ in range(4)]


def row(label, runs):
    return Candidate(label, "ce", runs=runs)


def test_the_model_predicts_once_and_each_part_is_left_out_once():
    y, (told, *_) = answers(103, 0, 0.2)
    model = Told(told)
    record = scores_and_parts(model, np.arange(103), y)
    without = record.pop(F1_WITHOUT)
    assert model.n_calls == 1
    assert record == {"f1": f1_score(y, told), "found_nothing": False}
    expected = []
    for part in np.array_split(np.random.default_rng(0).permutation(103), MOST_PARTS):
        kept = [i for i in range(103) if i not in set(part.tolist())]
        expected.append(f1_score(y[kept], told[kept]))
    assert without == expected
    assert (
        scores_and_parts(Told([1]), [0], [1])[F1_WITHOUT] == []
    )  # of one row nothing can be left out


def records(draw, n, n_models, n_seeds, positives=0.2, alike=0.6):
    """Runs of models that are equally good on rows of which each misses a few by chance."""
    y = draw.random(n) < positives
    errors = 0.4**0.5 * draw.standard_normal((n_models, n_seeds, n))
    errors += 0.6**0.5 * draw.standard_normal(n)
    told = y ^ (errors < stats.norm.ppf(np.where(y, 0.2, 0.05)))

    def f1(rows):
        true, found = y[rows], told[..., rows]
        return 2 * (true & found).sum(-1) / np.maximum(true.sum(-1) + found.sum(-1), 1)

    parts = np.array_split(np.random.default_rng(0).permutation(n), MOST_PARTS)
    without = np.stack([f1(np.delete(np.arange(n), part)) for part in parts], axis=-1)
    runs = [
        [{"f1": score, F1_WITHOUT: of_parts} for score, of_parts in zip(*of_model, strict=True)]
        for of_model in zip(f1(np.arange(n)).tolist(), without.tolist(), strict=True)
    ]
    return y, told, [row(f"model {i}", of_model) for i, of_model in enumerate(runs)]


@pytest.mark.parametrize(("n", "n_seeds"), [(1000, 1), (200, 3)])
def test_seven_equal_models_are_rarely_told_apart(n, n_seeds):
    wrong = 0
    for seed in range(50):
        draw = np.random.default_rng(seed)
        models = records(draw, n, 7, n_seeds, positives=0.2 if n == 1000 else 0.1)[2]
        best = max(range(7), key=lambda i: models[i].mean("f1"))
        wrong += any(high < 0 for _, _, high in differences(models, best))
    assert wrong <= 5  # 18 by intervals that hold one at a time, with one seed


def test_a_worse_model_is_told_apart():
    draw = np.random.default_rng(0)
    _, _, models = records(draw, 1000, 6, 3)
    worse = row("worse", [{"f1": run["f1"] - 0.15, F1_WITHOUT: np.subtract(run[F1_WITHOUT], 0.15)}
                          for run in models[0].runs])  # fmt: skip
    apart, low, high = differences([*models, worse], 1)[-1]
    assert low < apart < high < 0


def test_two_models_have_the_interval_of_a_t_test_on_the_parts():
    """With one seed and two models the largest of all differences is the only one."""
    _, _, models = records(np.random.default_rng(1), 600, 2, 1)
    one, other = (np.array(model.runs[0][F1_WITHOUT]) for model in models)
    n = len(one)
    error = np.sqrt((n - 1) / n * np.square(one - other - (one - other).mean()).sum())
    (_, low, high), itself = differences(models, 1)
    assert itself == (0, 0, 0)
    apart = models[0].mean("f1") - models[1].mean("f1")
    half = stats.t.ppf(0.975, n - 1) * error
    assert (low, high) == pytest.approx((apart - half, apart + half), abs=0.06 * half)


def test_several_models_have_the_intervals_of_a_studentised_range():
    """Independent models of one variance: Tukey's intervals."""
    draw = np.random.default_rng(2)
    models = [
        row(str(i), [{"f1": 0.5, F1_WITHOUT: draw.normal(size=MOST_PARTS)}]) for i in range(5)
    ]
    halves = []
    for to in range(5):
        of_parts = [np.array(model.runs[0][F1_WITHOUT]) for model in models]
        for i, (_, low, high) in enumerate(differences(models, to)):
            gaps = of_parts[i] - of_parts[to]
            error = np.sqrt((MOST_PARTS - 1) * np.var(gaps))
            halves += [(high - low) / 2 / error] if i != to else []
    tukey = stats.studentized_range.ppf(0.95, 5, MOST_PARTS - 1) / 2**0.5
    assert np.ptp(halves) < 1e-9
    assert np.mean(halves) == pytest.approx(tukey, rel=0.04)


def test_seeds_widen_an_interval_and_a_row_without_a_seed_adds_none():
    parts = np.random.default_rng(3).normal(0.6, 1e-9, (2, MOST_PARTS))
    runs = [{"f1": value, F1_WITHOUT: parts[1]} for value in (0.58, 0.66, 0.6)]
    of_seeds = row("ce", runs)
    baseline = Candidate("tfidf", "tfidf", runs=[{"f1": 0.51, F1_WITHOUT: parts[0]}])
    _, (apart, low, high) = differences([of_seeds, baseline], 0)
    half = stats.t.ppf(0.975, 2) * np.std([0.58, 0.66, 0.6], ddof=1) / 3**0.5
    assert apart == pytest.approx(0.51 - np.mean([0.58, 0.66, 0.6]))
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    # With one seed nothing is known of seeds: the rows alone, which hardly vary here.
    alone = differences([row("ce", runs[:1]), baseline], 0)[1]
    assert alone[2] - alone[1] < 1e-6
    # An earlier version wrote no parts.
    assert np.isnan(differences([row("ce", [{"f1": 0.5}]), baseline], 0)[1][1:]).all()


def test_rows_of_which_a_fit_found_nothing_are_marked_and_left_out():
    X, y = make_classification(200, weights=[0.8], flip_y=0.1, random_state=0)
    never = DiceClassifier(max_epochs=1, lr=1e-9, random_state=0)
    found = compare_losses(
        never, X, y, X_test=X, y_test=y, seeds=2, losses=["ce", "ce + tuned", "weighted_ce"]
    )
    ce, tuned, other = found.rows
    for row, empty in ((tuned, False), (other, False)):  # whatever so short a training found
        for run in row.runs:
            run["found_nothing"] = empty
    assert [run["found_nothing"] for run in ce.runs] == [True, True]
    assert found.best is not ce
    assert ce not in found.judged
    assert np.isnan(found.behind(ce)[1:]).all()
    note = "found nothing in 2 of 2 fits: trained too short to be judged"
    assert str(found).splitlines()[2].endswith(note)
    told = " ".join(verdict(found, "classification"))
    assert f"Left out: ce, which {note}." in told
    assert "Behind" not in told or "ce" not in told[told.index("Behind") :].split(".")[0].split(
        ", "
    )
    axis = ComparisonDisplay.from_comparison(found).axes_[-1]
    assert {float(line.get_ydata()[0]) for line in axis.lines if line.get_marker() == "D"} == {1, 2}
    assert [text.xy[1] for text in axis.texts if text.get_text() == "found nothing"] == [0]


@pytest.mark.parametrize(
    ("answers", "truth", "nothing"),
    [
        (["ham"] * 3, ["ham", "spam", "ham"], True),
        (["ham", "spam", "ham"], ["ham", "spam", "ham"], False),
        (["ham"] * 3, ["ham"] * 3, False),
        ([["O", "O"], ["O"], []], [["O", "B-X"], ["O"], []], True),
        ([["O", "B-X"], ["O"], []], [["O", "B-X"], ["O"], []], False),
        ([[], [], []], [[], [(0, 3, "PER"), (4, 5, "LOC")], []], True),
        (np.zeros((3, 2), int), np.eye(3, 2, dtype=int), True),
        (np.eye(3, 2, dtype=int), np.eye(3, 2, dtype=int), False),
    ],
)
def test_what_finds_nothing(answers, truth, nothing):
    model = SimpleNamespace(predict=lambda X: answers)
    rows = range(3)
    replayed = Replayed(model, rows)
    assert not replayed.found_nothing(truth)  # nothing is predicted yet
    replayed.model.predict(rows)
    assert replayed.found_nothing(truth) is nothing


def test_a_comparison_has_intervals_a_table_and_keeps_them(tmp_path):
    X, y = make_classification(200, weights=[0.8], flip_y=0.1, random_state=0)
    data = {"X_test": X[100:], "y_test": y[100:], "losses": ["ce", "dice"]}
    model = DiceClassifier(max_epochs=5)
    found = compare_losses(model, X[:100], y[:100], seeds=2, **data)
    model.set_params(loss="ce", random_state=0).fit(X[:100], y[:100])
    assert found.rows[0].runs[0]["f1"] == model.score(X[100:], y[100:])
    assert found.behind(found.best) == (0, 0, 0)
    other = next(row for row in found.rows if row is not found.best)
    apart, low, high = found.behind(other)
    assert low < apart < high
    assert apart <= 0
    printed = str(found).splitlines()
    cells = {line.split()[0]: line for line in printed}
    interval = f"{100 * apart:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    assert cells[other.label].endswith(interval)
    assert cells[found.best.label].endswith(f" ± {100 * found.best.sd('f1'):.1f}  {'highest':>21}")
    assert printed[0] == "in % (class 1; 100 training and 100 test rows)"
    assert [line.split()[0] for line in printed[1:-1]] == ["row", "ce", "dice"]
    assert printed[-1] == found.interval_note
    assert "new test rows and new seeds" in found.interval_note
    frame = found.to_frame().set_index("row")
    assert frame.loc[other.label, ["to_best", "low", "high"]].tolist() == [apart, low, high]
    assert frame["f1"].tolist() == [row.mean("f1") for row in found.rows]
    assert frame["n_runs"].tolist() == [2, 2]
    path = found.to_json(tmp_path / "c.json")
    again = compare_losses(model, X[:100], y[:100], seeds=2, resume_from=path, **data)
    assert again.measures == found.measures
    assert again.behind(again.rows[0]) == found.behind(found.rows[0])
    # A file without the parts, or with wrong ones, costs the intervals and no more.
    figures = json.loads(path.read_text())
    del figures["rows"][0]["runs"][0][F1_WITHOUT]
    path.write_text(json.dumps(figures))
    again = compare_losses(model, X[:100], y[:100], seeds=2, resume_from=path, **data)
    assert np.isnan(again.behind(next(r for r in again.rows if r.label == other.label))[1])
    assert "nan" not in str(again)
    one = compare_losses(model, X[:100], y[:100], seeds=1, **data)
    assert "±" not in str(one)


@pytest.mark.parametrize("cls", [cls for cls in ROWS_OF if cls is not DiceSequenceClassifier])
def test_every_text_estimator_predicts_once_for_all_parts(tiny_backbone, monkeypatch, cls):
    X, y = ROWS_OF[cls]
    model = cls(backbone=tiny_backbone, max_epochs=1, random_state=0).fit(X, y)
    expected, sizes, logits = model.evaluate(X, y), [], FineTuningNet.logits

    def counted(net, dataset):
        sizes.append(len(dataset))
        return logits(net, dataset)

    monkeypatch.setattr(FineTuningNet, "logits", counted)
    record = scores_and_parts(model, X, y)
    assert len(sizes) == 1
    assert record.items() >= expected.items()
    assert len(record[F1_WITHOUT]) == 12
    assert not vars(model).keys() & {"predict", "predict_spans"}  # a copy was asked


def compared(tmp_path, tiny_backbone, *args):
    lines = "ham\tlunch today\nspam\twin free money\nham\tthe bus was late\nspam\tfree prize call\n"
    (tmp_path / "sms.tsv").write_text("label\ttext\n" + lines * 5)
    args = ("--max-epochs", 1, "--out", tmp_path / "o", "--backbone", tiny_backbone, *args)
    result = running.run("compare", "--train", tmp_path / "sms.tsv", *args, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


def test_compare_says_what_its_rows_are(tmp_path, tiny_backbone):
    rows = "ce, dsc, ce_dice + tuned"
    text = compared(tmp_path, tiny_backbone, "--losses", rows, "--seeds", 2)
    flat = " ".join(text.split())
    assert re.search(r"^dsc +Self-adjusting dice", text, re.M)
    assert re.search(r"^\+ tuned +With a bias", text, re.M)
    assert "new seeds" in flat
    # Every other row is named, as within noise or as behind.
    for label in rows.split(", "):
        assert re.search(rf"(Highest F1: |noise.*[:,] ){re.escape(label)}[.,]", flat), label


class Row:
    """A row whose F1 is `f1`, with the interval of its difference to the best."""

    is_baseline = False
    n_empty = 0

    def __init__(self, label, f1, low, high):
        self.label = self.loss = label
        self.runs, self.f1, self.interval = [{}, {}], f1, (low - high, low, high)

    def mean(self, name):
        return self.f1


def said(*rows):
    best = max(rows, key=lambda row: row.f1)
    found = SimpleNamespace(
        rows=rows, judged=rows, best=best, settings={"n_test": 50}, behind=lambda row: row.interval
    )
    return " ".join(verdict(found, "tagging"))


def test_the_verdict_says_which_loss_to_take():
    best, near, far = Row("dsc", 0.8, 0, 0), (0.7, -0.2, 0.1), (0.5, -0.4, -0.2)
    stays = said(best, Row("ce_dice", *near), Row("ce", *near))
    assert "The default, ce, stays the loss to take: what is ahead is within noise." in stays
    worse = said(best, Row("ce_dice", *near), Row("ce", *far))
    assert "Take dsc: it is ahead of the default, ce, by more than noise." in worse
    assert "Within noise of it: ce_dice." in worse
    assert "Behind by more than noise: ce." in worse
    first = said(Row("ce", 0.9, 0, 0), Row("ce_dice", *near))
    assert first.startswith("Highest F1: ce, the default.")
    assert "or --seeds 5, may tell them apart." in first
    assert said(best) == ""


def test_a_comparison_tells_its_runs(capsys):
    X, y = make_classification(40, weights=[0.5], random_state=0)
    data = {"X_test": X, "y_test": y, "losses": ["ce", "ce + tuned"], "seeds": 1}
    model = DiceClassifier(max_epochs=2, batch_size=10)
    compare_losses(model, X, y, **data)
    assert capsys.readouterr() == ("", "")
    found = compare_losses(model, X, y, verbose=1, **data)
    lines, errors = capsys.readouterr()
    assert errors == ""
    told = [f"{row.label}, seed 0: F1 {100 * row.mean('f1'):.1f}" for row in found.rows]
    assert lines.splitlines() == told
