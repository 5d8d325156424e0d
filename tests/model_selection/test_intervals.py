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
from typer.testing import CliRunner

from skdice import (
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceTokenClassifier,
    TfidfClassifier,
)
from skdice.cli._verdict import verdict
from skdice.engine.net import FineTuningNet
from skdice.model_selection import compare_losses
from skdice.model_selection.candidates import Candidate
from skdice.model_selection.intervals import F1_WITHOUT, MOST_PARTS, difference, scores_and_parts
from skdice.model_selection.progress import ComparisonProgress
from tests.data import ANSWERS, ENTITIES, JOINED, QUESTIONS, SENTENCES, SPANS, TAGS


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
    scores, without = scores_and_parts(model, np.arange(103), y)
    assert model.n_calls == 1
    assert scores == {"f1": f1_score(y, told)}
    expected = []
    for part in np.array_split(np.random.default_rng(0).permutation(103), MOST_PARTS):
        kept = [i for i in range(103) if i not in set(part.tolist())]
        expected.append(f1_score(y[kept], told[kept]))
    assert without == expected
    assert scores_and_parts(Told([1]), [0], [1])[1] == []  # of one row nothing can be left out


def test_the_interval_is_the_formula_and_near_to_a_bootstrap():
    y, told = answers(600, 1, 0.08)
    rows = np.arange(600)
    runs = []
    for seed, answer in enumerate(told):
        scores, without = scores_and_parts(Told(answer), rows, y)
        runs.append({"seed": seed % 2, **scores, F1_WITHOUT: without})
    one, other = row("one", runs[:2]), row("other", runs[2:])
    apart, low, high = difference(one, other, [one, other])
    f1 = [run["f1"] for run in runs]
    assert apart == pytest.approx(np.mean(f1[:2]) - np.mean(f1[2:]))
    parts = np.array([run[F1_WITHOUT] for run in runs])
    apart_without = parts[:2].mean(axis=0) - parts[2:].mean(axis=0)
    n = len(apart_without)
    of_rows = sum((n - 1) / n * (value - apart_without.mean()) ** 2 for value in apart_without)
    pooled = ((f1[0] - f1[1]) ** 2 / 2 + (f1[2] - f1[3]) ** 2 / 2) / 2
    of_seeds = pooled * (1 / 2 + 1 / 2)
    freedom = (of_rows + of_seeds) ** 2 / (of_rows**2 / (n - 1) + of_seeds**2 / 2)
    half = stats.t.ppf(0.975, freedom) * (of_rows + of_seeds) ** 0.5
    assert (low, high) == pytest.approx((apart - half, apart + half))
    # The part of the rows alone is what a paired bootstrap of the rows gives.
    draw, boot = np.random.default_rng(2), []
    for _ in range(400):
        drawn = draw.integers(600, size=600)
        scores = [
            2 * (y & answer)[drawn].sum() / (y[drawn].sum() + answer[drawn].sum())
            for answer in told
        ]
        boot.append(np.mean(scores[:2]) - np.mean(scores[2:]))
    assert of_rows**0.5 == pytest.approx(np.std(boot), rel=0.5)
    # With one seed, the rows alone; a row against itself is exactly 0.
    single = [row("one", runs[:1]), row("other", runs[2:3])]
    apart_without = parts[0] - parts[2]
    of_rows = (n - 1) * np.var(apart_without)
    assert difference(*single, single)[2] == pytest.approx(
        f1[0] - f1[2] + stats.t.ppf(0.975, n - 1) * of_rows**0.5
    )
    assert difference(one, one, [one, other]) == (0, 0, 0)
    # An earlier version wrote no parts.
    del runs[0][F1_WITHOUT]
    apart, low, high = difference(one, other, [one, other])
    assert np.isnan([low, high]).all()
    assert apart == pytest.approx(np.mean(f1[:2]) - np.mean(f1[2:]))


def test_a_row_that_does_not_depend_on_the_seed_adds_no_chance_of_seeds():
    parts, f1 = [[0.5, 0.52, 0.51], [0.61, 0.6, 0.64]], [0.58, 0.66]
    runs = [{"f1": value, F1_WITHOUT: parts[1]} for value in f1]
    of_seeds, plain = row("ce", runs), [{"f1": 0.51, F1_WITHOUT: parts[0]}]
    for baseline in (Candidate("tfidf", "tfidf", runs=plain * n) for n in (1, 2)):
        apart, low, high = difference(baseline, of_seeds, [baseline, of_seeds])
        gaps = np.subtract(*parts)
        rows = 2 / 3 * sum((gap - np.mean(gaps)) ** 2 for gap in gaps)
        seeds = np.var(f1, ddof=1) / 2
        freedom = (rows + seeds) ** 2 / (rows**2 / 2 + seeds**2 / 1)
        half = stats.t.ppf(0.975, freedom) * np.sqrt(rows + seeds)
        assert apart == pytest.approx(0.51 - 0.62)
        assert (low, high) == pytest.approx((apart - half, apart + half))


def test_a_comparison_has_intervals_a_table_and_keeps_them(tmp_path):
    X, y = make_classification(200, weights=[0.8], flip_y=0.1, random_state=0)
    data = {"X_test": X[100:], "y_test": y[100:], "losses": ["ce", "dice"]}
    model = DiceClassifier(max_epochs=5)
    found = compare_losses(model, X[:100], y[:100], seeds=2, title="<b>", **data)
    model.set_params(loss="ce", random_state=0).fit(X[:100], y[:100])
    assert found.rows[0].runs[0]["f1"] == model.score(X[100:], y[100:])
    assert found.behind(found.best) == (0, 0, 0)
    other = next(row for row in found.rows if row is not found.best)
    apart, low, high = found.behind(other)
    assert low < apart < high
    assert apart <= 0
    page = found._repr_html_()
    cell = next(line[-1] for line in found.table()[1] if line[0] == other.label)
    assert f"<td>{cell}</td>" in page
    assert cell == f"{100 * apart:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    assert "&lt;b&gt;" in page
    printed = str(found).splitlines()
    assert printed[0] == "<b>: in % (class 1)"
    assert [line.split()[0] for line in printed[1:]] == ["row", "ce", "dice"]
    assert all(
        cell in line
        for line, cells in zip(printed[2:], found.table()[1], strict=True)
        for cell in cells
    )
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
    assert "nan" not in again._repr_html_()
    one = compare_losses(model, X[:100], y[:100], seeds=1, **data)
    assert "±" not in one._repr_html_()


def test_every_kind_of_model_has_parts(tiny_backbone, sentences):
    X, y = sentences
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0).fit(X, y)
    texts = [" ".join(row) for row in X]
    labels = ["a" if i % 3 else "b" for i in range(len(X))]
    tfidf = TfidfClassifier(random_state=0).fit(texts, labels)
    for model, rows, true in ((tagger, X, y), (tfidf, texts, labels)):
        scores, without = scores_and_parts(model, rows, true)
        assert scores == model.evaluate(rows, true)
        assert len(without) == min(MOST_PARTS, len(rows))
        assert not vars(model).keys() & {"predict", "predict_spans"}


@pytest.mark.parametrize(
    ("cls", "X", "y"),
    [
        (DiceTokenClassifier, SENTENCES, TAGS),
        (DiceEntityRecognizer, JOINED, ENTITIES),
        (DiceMRCTagger, SENTENCES, SPANS),
        (DiceQuestionAnswerer, QUESTIONS, ANSWERS),
        (DiceMultiSpanAnswerer, QUESTIONS, ANSWERS),
    ],
)
def test_every_text_estimator_predicts_once_for_all_parts(tiny_backbone, monkeypatch, cls, X, y):
    model = cls(backbone=tiny_backbone, max_epochs=1, random_state=0).fit(X, y)
    expected, sizes, logits = model.evaluate(X, y), [], FineTuningNet.logits

    def counted(net, dataset):
        sizes.append(len(dataset))
        return logits(net, dataset)

    monkeypatch.setattr(FineTuningNet, "logits", counted)
    scores, without = scores_and_parts(model, X, y)
    assert len(sizes) == 1
    assert scores == expected
    assert len(without) == 12


def compared(tmp_path, tiny_backbone, *args):
    from skdice.cli.app import app

    lines = "ham\tlunch today\nspam\twin free money\nham\tthe bus was late\nspam\tfree prize call\n"
    (tmp_path / "sms.tsv").write_text("label\ttext\n" + lines * 5)
    args = ("compare", "--train", tmp_path / "sms.tsv", "--max-epochs", 1, "--out", tmp_path / "o",
            "--backbone", tiny_backbone, *args)  # fmt: skip
    result = CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


def test_compare_says_what_its_rows_are_and_fits_80_columns(tmp_path, tiny_backbone):
    rows = "ce, dice, dsc, ce + RandomOverSampler, ce_dice + tuned"
    text = compared(tmp_path, tiny_backbone, "--losses", rows, "--seeds", 2)
    flat = " ".join(text.split())
    table = text[text.index("row ") :].splitlines()
    assert max(map(len, table[: table.index("")] if "" in table else table)) <= 80
    assert re.search(r"^dsc +dice in which", text, re.M)
    assert re.search(r"^dice, dsc +alike: the exponent of dsc is 0.1 by default", text, re.M)
    assert re.search(r"^\+ tuned +with a bias", text, re.M)
    assert re.search(r"^\+ RandomOverSampler +trained on rows", text, re.M)
    assert "Best here: " in flat
    assert "of 2 seeds" in flat
    # Every other row is named, as within noise or as behind.
    for label in rows.split(", "):
        assert re.search(rf"(Best here: |noise.*[:,] ){re.escape(label)}[.,]", flat), label


class Row:
    """A row whose F1 is `f1`, with the interval of its difference to the best."""

    is_baseline = sampler = decision = None

    def __init__(self, label, f1, low, high):
        self.label = self.loss = label
        self.runs, self.f1, self.interval = [{}], f1, (low - high, low, high)

    def mean(self, name):
        return self.f1


def said(*rows):
    best = max(rows, key=lambda row: row.f1)
    found = SimpleNamespace(
        rows=rows, best=best, settings={"n_test": 50}, behind=lambda row: row.interval
    )
    return " ".join(verdict(found, "tagging"))


def test_the_verdict_says_which_loss_to_take():
    best, near, far = Row("dsc", 0.8, 0, 0), (0.7, -0.2, 0.1), (0.5, -0.4, -0.2)
    stays = said(best, Row("ce", *near), Row("ce_dice", *near))
    assert "The default, ce_dice, stays the loss to take: what is ahead of it here (dsc)" in stays
    assert "train FILE --out" in stays
    worse = said(best, Row("ce", *near), Row("ce_dice", *far))
    assert "Take dsc: it is ahead of the default, ce_dice, by more than noise." in worse
    assert "train FILE --loss dsc --out" in worse
    first = said(Row("ce_dice", 0.9, 0, 0), Row("ce", *near))
    assert first.startswith("Best here: ce_dice, the default.")
    assert "train FILE --out" in first
    other = said(best, Row("ce", *near))
    assert "until then the simplest will do" in other
    assert "train FILE --loss dsc --out" in other
    assert "Best here" not in said(best)


def test_the_verdict_does_not_drop_the_sampler_or_the_decision_of_the_best():
    best = Row("ce", 0.9, 0, 0)
    best.label, best.sampler, best.decision = "ce + Sampler + tuned", object(), "tuned"
    told = said(best, Row("ce", 0.1, -0.9, -0.7))
    assert "fit ce + Sampler + tuned in Python, by Resampling and Tuned decisions in the" in told
    assert "train FILE" not in told
    near = said(best, Row("ce_dice", 0.8, -0.2, 0.1))
    assert "train FILE --out" in near


def test_a_comparison_tells_row_epoch_update_and_the_time_left(capsys, monkeypatch):
    X, y = make_classification(40, weights=[0.5], random_state=0)
    data = {"X_test": X, "y_test": y, "losses": ["ce", "ce + tuned"], "seeds": 1}
    model = DiceClassifier(max_epochs=2, batch_size=10)
    compare_losses(model, X, y, **data)
    assert capsys.readouterr() == ("", "")
    found = compare_losses(model, X, y, verbose=1, **data)
    lines, errors = capsys.readouterr()
    assert errors == ""
    first, last = lines.splitlines()
    assert re.fullmatch(r"ce, seed 0: F1 \d+\.\d, about \d+ s left", first)
    assert last == f"ce + tuned, seed 0: F1 {100 * found.rows[1].mean('f1'):.1f}"

    shares = []

    def advance(self, done, what, *notes, total=None):
        self.done = done
        shares.append((what, done / total if total else 0, *notes))

    monkeypatch.setattr(ComparisonProgress, "advance", advance)
    compare_losses(model, X, y, verbose=1, **data)
    updates = [told for told in shares if len(told) > 2]
    # One fit, and one on each of five folds and on all rows: 8 updates each, or on a fold 2 * 4.
    assert len(updates) == 8 * 7
    np.testing.assert_allclose([told[1] for told in updates], np.arange(1, 57) / 56)
    assert updates[5][2:4] == ("epoch 2 of 2", "update 6 of 8")
    assert {told[0] for told in updates} == {"ce, seed 0", "ce + tuned, seed 0"}


def test_compare_with_one_seed_has_no_spread(tmp_path, tiny_backbone):
    text = compared(tmp_path, tiny_backbone, "--losses", "ce, dice", "--seeds", 1)
    assert "±" not in text
    assert "seed(s)" not in text
    if "Intervals" in text:
        assert "nothing is known" in " ".join(text.split())
