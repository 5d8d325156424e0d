"""DiceTokenClassifier as a scikit-learn user meets it."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import torch
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdice import DiceTokenClassifier
from skdice.engine.fit_plan import encode
from skdice.losses import LOSSES
from skdice.metrics import Fbeta, span_f1_score, span_f1_scorer
from skdice.metrics.decisions.span_counter import SpanCounter
from skdice.tags.decoding import decode
from skdice.tags.schemes import check_tags, get_spans


@pytest.fixture
def tagger(tiny_backbone):
    return DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, lr=1e-3, random_state=0)


@pytest.fixture(scope="module")
def shallow(build_backbone, tmp_path_factory):
    """A backbone of one layer."""
    return build_backbone(str(tmp_path_factory.mktemp("shallow")), num_hidden_layers=1)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_every_loss_learns_and_predicts(shallow, sentences, loss):
    X, y = sentences
    settings = dict(max_epochs=25, lr=2e-2, batch_size=8, dropout=0.0, random_state=0)
    tagger = DiceTokenClassifier(loss=loss, backbone=shallow, **settings).fit(X, y)
    predicted = tagger.predict(X)
    assert predicted.shape == (len(X),)
    assert predicted.dtype == object
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert all(isinstance(tag, str) for row in predicted for tag in row)
    assert tagger.score(X, y) > 0.8  # sixteen sentences seen 25 times
    for row, sentence in zip(tagger.predict_proba(X), X, strict=True):
        assert row.shape == (len(sentence), len(tagger.classes_))
        np.testing.assert_allclose(row.sum(axis=1), 1)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_every_backbone_family(tiny_backbones, sentences, kind):
    X, y = sentences
    settings = dict(max_epochs=20, lr=2e-2, batch_size=8, dropout=0.0, random_state=0)
    tagger = DiceTokenClassifier(backbone=tiny_backbones[kind], **settings).fit(X, y)
    assert tagger.score(X, y) > 0.8
    one_by_one = [tagger.predict_proba([row])[0] for row in X[:4]]
    for alone, together in zip(one_by_one, tagger.predict_proba(X), strict=False):
        np.testing.assert_allclose(alone, together, atol=1e-5)  # padding changes nothing


def test_empty_and_very_long_sentences_get_every_tag(tagger, sentences):
    X, y = sentences
    long = ["anna"] * 500
    tagger.fit([*X, [], long], [*y, [], ["O"] * 500])
    predicted = tagger.predict([[], long, ["rain"], ["\u200b", ""]])
    spans = tagger.predict_spans([[], long, ["rain"], ["\u200b", ""]])
    assert [[span[:3] for span in row] for row in spans] == [get_spans(row) for row in predicted]
    assert all(0 <= span.score <= 1 for row in spans for span in row)
    assert [len(row) for row in predicted] == [0, 500, 1, 2]
    assert tagger.predict_proba([[]])[0].shape == (0, len(tagger.classes_))
    assert len(tagger.predict([[]])) == 1


def test_constrained_output_is_never_ill_formed(tagger):
    X = [["anna", "bob", "dan", "rain"], ["rome"]] * 3
    y = [["S-A", "B-A", "E-A", "O"], ["O"]] * 3
    tagger.set_params(scheme="bioes", constrained=True).fit(X, y)
    # A head that wants a tag which cannot begin a sentence everywhere.
    with torch.no_grad():
        tagger.net_.module_.output_layer.bias[list(tagger.classes_).index("E-A")] = 5.0
    sentences = [["a", "the", "rome", "bob", "x", "y"] * 4] * 3
    check_tags([list(row) for row in tagger.predict(sentences)], "bioes")
    free = tagger.set_params(constrained=False).predict(sentences)
    with pytest.raises(ValueError, match="tag"):
        check_tags([list(row) for row in free], "bioes")


@pytest.mark.parametrize(
    ("scheme", "row", "slip", "what"),
    [
        ("iob1", "I-A B-A I-A O", "B-A", "cannot begin a sentence"),
        ("ioe2", "E-A I-A E-A O", "I-A", "cannot end a sentence"),
        ("bilou", "U-A B-A L-A O", "S-A", "has no prefix of B, I, L, U"),
    ],
)
@pytest.mark.parametrize("constrained", [False, True])
def test_tags_that_break_the_scheme_are_counted(tagger, scheme, row, slip, what, constrained):
    X = [["anna", "bob", "dan", "rain"]] * 6 + [["anna"]] * 2
    y = [row.split()] * 6 + [[slip]] * 2
    tagger.set_params(loss="ce_dice", constrained=constrained)
    with pytest.warns(UserWarning, match="2 of 26 tags break the scheme") as record:
        tagger.fit(X, y)
    (message,) = [str(w.message) for w in record]
    wrong = f"y[6][0]: the tag {slip!r} {what}"
    assert wrong in message
    assert "constrained=True never predicts them" in message
    assert record[0].filename == __file__
    assert tagger.scheme_ == scheme
    with pytest.raises(ValueError, match=re.escape(wrong)):
        clone(tagger).set_params(scheme=scheme).fit(X, y)
    # The right tags of all sentences but the last two can be decoded.
    classes = tagger.classes_.tolist()
    log_p = [np.log(np.eye(len(classes))[[classes.index(tag) for tag in row]] + 1e-9) for row in y]
    assert decode(log_p, classes, scheme, constrained=True)[:6] == y[:6]


@pytest.mark.parametrize("stray", ["0", "o", "-", "", "B_PER"])
def test_a_stray_tag_is_refused_before_anything_is_loaded(stray):
    X, y = [["anna", "sat"], ["bob", "sat"]], [["B-PER", "O"], ["B-LOC", stray]]
    tagger = DiceTokenClassifier(backbone="no/such-model")
    message = rf"y\[1\]\[1\] is {stray!r}.*1 such tags.*'O'.*scheme='plain'"
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y)
    with pytest.raises(ValueError, match=rf"y_val\[1\]\[1\] is {stray!r}"):
        tagger.fit(X[:1], y[:1], X_val=X, y_val=y)
    with pytest.raises(ValueError, match=f"classes.* is {stray!r}"):
        tagger.partial_fit(X[:1], y[:1], classes=["B-PER", "I-PER", "O", stray])
    with pytest.raises(ValueError, match=rf"y\[1\]\[1\]: the tag {stray!r} has no prefix of B, I"):
        tagger.set_params(scheme="iob2").fit(X, y)


@pytest.mark.parametrize("value", [float("nan"), 0])
def test_the_advice_for_a_missing_tag_is_not_another_stray_tag(value):
    with pytest.raises(TypeError, match=r"y\[0\]\[1\] is .*write 'O'") as error:
        DiceTokenClassifier(backbone="no/such-model").fit([["anna", "sat"]], [["B-PER", value]])
    assert "str()" not in str(error.value)
    assert "''" not in str(error.value)


def test_all_classes_of_partial_fit_are_no_sentence(tagger):
    X, y = [["anna", "sat"]], [["O", "O"]]
    classes = ["O", "E-LOC", "I-LOC", "B-LOC", "S-LOC"]
    assert clone(tagger).partial_fit(X, y, classes=classes).scheme_ == "bioes"
    tagger.set_params(scheme="bioes").partial_fit(X, y, classes=classes)
    with pytest.raises(ValueError, match=r"y\[0\]\[0\]: the tag 'E-LOC' cannot begin"):
        tagger.partial_fit(X, [["E-LOC", "O"]])


def test_a_plain_o_is_the_background(tagger):
    X = [["anna", "went", "home", "today"], ["rain", "in", "rome", "."]] * 3
    y = [["NAME", "O", "O", "DATE"], ["O", "O", "PLACE", "O"]] * 3
    assert tagger.fit(X, y).scheme_ == "plain"
    free = clone(tagger).set_params(constrained=False).fit(X, y)
    assert free.predict(X).tolist() == tagger.predict(X).tolist()
    assert tagger.classes_[tagger.net_.criterion_.background_] == "O"
    nothing = [["O"] * len(row) for row in X]
    for predicted in (nothing, y, [["NAME"] * 4] * 6):
        want = span_f1_score(y, predicted, scheme="plain")
        classes = tagger.classes_.tolist()
        flat = np.array([classes.index(tag) for row in predicted for tag in row])
        counts = SpanCounter(y, classes, "plain").counts(flat)
        assert Fbeta(average="micro")._value(counts) == pytest.approx(want)
    assert tagger.score(X, y) == span_f1_score(y, tagger.predict(X), scheme="plain")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("loss", "dise"), ("loss", 3), ("backbone", "no/such/place/here"), ("lr", 0)),
        *(("scheme", "bilo"), ("device", "tpu9"), ("precision", "fp16"), ("frozen", "some")),
        *(("frozen", 99), ("max_length", 9999), ("stride", 5000), ("schedule", "steps")),
        ("batch_size", 0),
    ],
)
def test_bad_parameters_are_named(tagger, sentences, name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name}.*{value}"):
        tagger.set_params(**{"device": "cpu", name: value}).fit(*sentences)
    assert not hasattr(tagger, "net_")


def test_bad_data_is_named_before_anything_is_loaded(sentences):
    X, y = sentences
    tagger = DiceTokenClassifier(backbone="nowhere/never-downloaded")
    for data, more, error, message in (
        ((X, [["O"], *y[1:]]), {}, ValueError, r"y\[0\] has 1 tag, but X\[0\] has 5"),
        ((X, y[1:]), {}, ValueError, "16 sentences and y 15"),
        (([], []), {}, ValueError, "0 samples"),
        (([["a", "b"]], [["O", "O"]]), {}, ValueError, "one class only"),
        (([[], []], [[], []]), {}, ValueError, "no tag at all"),
        (([["a"]], [[float("nan")]]), {}, TypeError, "nan"),
        ((X, y), {"X_val": X}, ValueError, "y_val is missing"),
        ((X, y), {"sample_weight": [1.0]}, ValueError, "sample_weight"),
        ((X, y), {}, ValueError, r"work offline.*--no-deps gt-all"),
    ):
        with pytest.raises(error, match=message):
            tagger.fit(*data, **more)
    with pytest.raises(ValueError, match="I-PER"):
        tagger.set_params(scheme="iob2").fit([["a", "b"]], [["O", "I-PER"]])


def test_score_counts_an_unseen_type_as_missed(tagger, sentences):
    X, y = sentences
    tagger.fit(X, y)
    assert tagger.score([["a"]], [["B-EVENT"]]) == 0.0
    more = [*X, ["a"]], [*y, ["B-EVENT"]]
    expected = span_f1_score(more[1], tagger.predict(more[0]))
    assert tagger.score(*more) == tagger.evaluate(*more)["f1"] == expected


def test_folds_that_lack_a_type(tagger, sentences):
    X, y = sentences
    y = [["B-RARE" if tag == "B-LOC" and i < 8 else tag for tag in row] for i, row in enumerate(y)]
    assert np.isfinite(cross_val_score(tagger, X, y, cv=2, error_score="raise")).all()
    search = GridSearchCV(tagger, {"loss": ["ce", "dsc"]}, cv=2, error_score="raise")
    own = search.fit(X, y).cv_results_["mean_test_score"]
    search.set_params(scoring=span_f1_scorer).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], own)


@pytest.mark.parametrize("sampler", [RandomOverSampler(), RandomUnderSampler()])
def test_a_sampler_of_labels_is_refused_before_anything_is_loaded(sentences, sampler):
    tagger = DiceTokenClassifier(backbone="nowhere/never-downloaded", sampler=sampler)
    message = r"sampler=.* use TagOverSampler or BackgroundUnderSampler"
    with pytest.raises(ValueError, match=message):
        tagger.fit(*sentences)


def test_partial_fit_counts_over_its_calls(tagger, sentences, tmp_path):
    X, y = sentences
    weights = np.linspace(0.5, 2, 3)
    classes = sorted({t for row in y for t in row})
    tagger.set_params(loss="weighted_ce")
    tagger.partial_fit(X[:3], y[:3], classes, sample_weight=weights)
    saved = DiceTokenClassifier.from_pretrained(tagger.save_pretrained(tmp_path / "m"))
    for reader in (tagger, pickle.loads(pickle.dumps(tagger)), saved):
        for again in (1, 2):
            reader.partial_fit(X[3:4], y[3:4])
            shares = [*zip(weights, y[:3], strict=True), (again, y[3])]
            wanted = [sum(w * row.count(c) for w, row in shares) for c in reader.classes_]
            criterion = reader.net_.criterion_
            np.testing.assert_allclose(criterion.class_counts_, wanted)
            assert criterion.n_samples_ == pytest.approx(sum(wanted))
    for warm in (True, False):  # a fit counts its own rows only, and later calls add to them
        tagger.set_params(warm_start=warm).fit(X, y)
        assert tagger.net_.criterion_.n_samples_ == sum(map(len, X))
        tagger.partial_fit(X, y)
        assert tagger.net_.criterion_.n_samples_ == 2 * sum(map(len, X))


def test_validation_types_that_training_knows_none_of_are_refused(tagger, sentences):
    X, y = sentences
    foreign = [["B-ZZZ"] * len(row) for row in y]
    message = r"none of the types of y: it has \['ZZZ'\], and y has \['LOC', 'ORG', 'PER'\]"
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, y, X_val=X, y_val=foreign)
    plain = [["NOUN", "VERB"]]
    with pytest.raises(ValueError, match=r"none of the tags of y: it has \['ADJ'\]"):
        tagger.fit([["rain", "went"]], plain, X_val=[["old"]], y_val=[["ADJ"]])
    assert not hasattr(tagger, "net_")
    tagger.fit(X, y, X_val=[*X, ["a"]], y_val=[*y, ["B-ZZZ"]])
    tagger.fit(X, y, X_val=[["rome"]], y_val=[["S-LOC"]])  # a type that training knows


def test_tables_of_many_sentences_are_those_of_each(tagger):
    """The reference takes one window after the other."""
    draw = np.random.default_rng(0)
    X = [draw.choice(["anna", "rome", "unhappily", "x"], n).tolist() for n in (1, 40, 3, 25, 2)]
    y = [["B-X" if word == "anna" else "O" for word in row] for row in X]
    tagger.set_params(max_length=12).fit(X, y)
    X.insert(2, [])
    found = list(tagger.predict_proba(X))
    dataset, rows = encode(tagger, X), [[] for _ in X]
    for window, logits in zip(dataset.windows, tagger.net_.logits(dataset), strict=True):
        rows[window.row].append((window, logits.astype(float)))
    assert max(map(len, rows)) > 1
    for row, words, table in zip(rows, X, found, strict=True):
        expected = np.full((len(words), 2), np.nan)
        for window, logits in row:
            expected[window.words] = np.exp(log_softmax(logits, axis=-1))
        np.testing.assert_allclose(table, expected, rtol=1e-12)
