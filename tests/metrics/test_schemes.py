"""Tag schemes and decoding."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.tags import convert_scheme
from skdice.tags.decoding import decode, viterbi
from skdice.tags.schemes import (
    check_tags,
    faults,
    get_spans,
    infer_scheme,
    strict_spans,
    to_tags,
    transitions,
)
from tests.data import PREFIXES, tags_of

TAGGED = list(PREFIXES)


@lru_cache
def well_formed(scheme, n, types="XY"):
    """The tags of every set of spans in `n` tokens, from the definition of each scheme."""
    if n == 0:
        return [()]
    found = [(*row, "O") for row in well_formed(scheme, n - 1, types)]
    for size in range(1, n + 1):
        for row, kind in itertools.product(well_formed(scheme, n - size, types), types):
            adjacent = bool(row) and row[-1][1:] == f"-{kind}"
            middle = ["M" if scheme == "bmes" else "I"] * size
            if scheme == "iob2" or (scheme == "iob1" and adjacent):
                middle[0] = "B"
            elif scheme == "ioe2":
                middle[-1] = "E"
            elif scheme in ("bioes", "bmes", "bilou"):
                last, single = "LU" if scheme == "bilou" else "ES"
                middle = [single] if size == 1 else ["B", *middle[2:], last]
            before = list(row)
            if scheme == "ioe1" and adjacent:
                before[-1] = f"E-{kind}"
            found.append((*before, *(f"{prefix}-{kind}" for prefix in middle)))
    return found


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ([["B-A", "I-A", "O"]], "iob2"),
        ([["I-A", "B-A", "O"]], "iob1"),
        ([["I-A", "I-A"], ["O", "I-B"]], "iob1"),
        ([["B-A", "E-A"], ["S-A"]], "bioes"),
        ([["B-A", "M-A", "E-A"]], "bmes"),
        ([["B-A", "I-A", "L-A"], ["O", "O"]], "bilou"),
        ([["U-A", "O"], ["B-A", "L-A"]], "bilou"),
        ([["NOUN", "VERB"]], "plain"),
        ([["PROPN", "B-A"]], "plain"),
        ([["O", "O"]], "iob2"),
        ([["B-GPE.NOM", "I-GPE.NOM"]], "iob2"),
        ([["O", "I-A"], ["B-A", "I-A"]], "iob2"),
        ([["I-A", "E-A"], ["E-A"], ["O", "E-B"]], "ioe2"),
        ([["I-A", "E-A", "I-A"], ["I-B", "O"]], "ioe1"),
        ([["B", "I", "O"]], "iob2"),
        ([["B", "E", "S"], ["B", "M", "E"]], "bmes"),
        ([["S", "E", "V", "PN", "A"]], "plain"),  # parts of speech
        ([["PER", "O"]], "plain"),
        ([["B-人名", "I-人名", "O"]], "iob2"),
        ([["B-X-Y", "I-X-Y", "O"], ["B-X y", "I-X y"]], "iob2"),
        ([[]], "iob2"),
        ([], "plain"),
    ],
)
def test_inference(tags, scheme):
    assert infer_scheme(tags) == scheme


@pytest.mark.parametrize("scheme", [*TAGGED, "plain"])
@pytest.mark.parametrize("constrained", [True, False])
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**16), st.lists(st.integers(0, 5), max_size=8))
def test_sentences_are_decoded_together_as_alone(constrained, scheme, seed, lengths):
    classes = tags_of(scheme)
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(n, len(classes))).round(1) for n in lengths]  # with ties
    found = decode(iter(tables), classes, scheme, constrained=constrained)
    assert found == [decode([t], classes, scheme, constrained=constrained)[0] for t in tables]
    assert [len(row) for row in found] == lengths


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_scheme_is_inferred_in_spite_of_slips(scheme, data):
    """At one slip for six sentences of a corpus that no other scheme fits."""
    corpus = {
        "iob1": [["I-X", "B-X", "O"], ["I-X", "I-X"], ["I-Y", "O"]],
        "ioe1": [["I-X", "E-X", "I-X", "O"], ["I-Y", "E-Y", "I-Y"]],
        "bmes": [["B-X", "M-X", "E-X"], ["S-X", "O"]],
    }
    rows = corpus.get(scheme) or [to_tags([("X", 0, 3), ("Y", 3, 4)], 5, scheme)]
    rows = [list(row) for row in rows * 6]
    row = rows[data.draw(st.integers(0, len(rows) - 1))]
    place = data.draw(st.integers(0, len(row) - 1))
    row[place] = data.draw(st.sampled_from([f"{p}-{t}" for p in "BIESMLU" for t in "XYZ"]))
    assert infer_scheme(rows) == scheme


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-A", "I-A"], "iob2"),
        (["O", "B-A", "I-A", "I-B"], "iob1"),  # in iob2 nothing could begin a B
        (["I-A", "I-B"], "iob1"),
        (["B-A", "E-A", "I-A", "S-A", "O"], "bioes"),
        (["B-A", "L-A", "I-A", "U-A", "O"], "bilou"),
        (["I-A", "E-A"], "ioe2"),
        (["NOUN", "VERB"], "plain"),
    ],
)
def test_inference_from_labels_alone(labels, scheme):
    assert infer_scheme([], labels) == scheme
    assert infer_scheme([["O", "O"]], labels) == scheme


@pytest.mark.parametrize("stray", ["0", "o", "-", "", "_", "O ", "B_PER", "b-PER", "PER", " B-PER"])
def test_a_stray_tag_is_refused(stray):
    rows = [["B-PER", "I-PER", "O"], ["O", stray, stray], ["B-LOC", "O"]]
    message = rf"y\[1\]\[1\] is {stray!r}, .*2 such tags.*'O'.*scheme='plain'"
    with pytest.raises(ValueError, match=message):
        infer_scheme(rows)
    with pytest.raises(ValueError, match=rf"tags\[0\]\[1\] is {stray!r}"):
        get_spans(rows[1], "iob2")
    if not stray.strip(" -_0oO"):  # however many there are, and however few the others
        with pytest.raises(ValueError, match=r"y\[0\]\[1\]"):
            infer_scheme([["B-PER", *[stray] * 9]])


@pytest.mark.parametrize("spelling", ["b-{}", "{}-B", "B_{}", "B.{}", "{}/I", "B\u2010{}"])
def test_another_spelling_is_read_as_plain_with_a_warning(spelling):
    rows = [[spelling.format("PER"), "O", spelling.format("LOC")]]
    with pytest.warns(UserWarning, match=r"read as plain tags.*'B-PER'"):
        assert infer_scheme(rows) == "plain"


@pytest.mark.parametrize("scheme", TAGGED)
def test_well_formed_tags_are_those_of_the_definition(scheme):
    classes = tags_of(scheme)
    for n in range(4):
        legal = set(well_formed(scheme, n))
        for row in itertools.product(classes, repeat=n):
            assert (row in legal) == (not list(faults(row, scheme)))
    for row in legal:
        assert tuple(to_tags(get_spans(row, scheme), len(row), scheme)) == row
        assert strict_spans(row, scheme) == get_spans(row, scheme) or scheme == "iob1"


@pytest.mark.parametrize("a", TAGGED)
@pytest.mark.parametrize("b", TAGGED)
def test_conversion_keeps_the_spans(a, b):
    rows = [list(row) for row in well_formed(a, 4)]
    converted = convert_scheme(rows, b, scheme=a)
    check_tags(converted, b)
    assert [get_spans(row) for row in converted] == [get_spans(row) for row in rows]
    assert convert_scheme(converted, a, scheme=b) == rows


def test_conversion_of_prefixes_alone_and_of_plain_tags():
    assert convert_scheme([["B", "E", "S", "O"]]) == [["B", "I", "B", "O"]]
    assert convert_scheme([["B-A", "I-A", "O"]], "plain") == [["A", "A", "O"]]
    with pytest.raises(ValueError, match="plain tags"):
        convert_scheme([["NOUN", "VERB"]])
    with pytest.raises(ValueError, match="to='io'"):
        convert_scheme([["B-A"]], "io")
    with pytest.raises(TypeError, match=r"y\[0\] is 'B-A'.*for a single sentence give \[y\]"):
        convert_scheme(["B-A", "I-A"])


def test_plain_spans_are_tokens():
    assert get_spans(["N", "V"], "plain") == [("N", 0, 1), ("V", 1, 2)]
    assert get_spans(["O", "N"], "plain") == [("N", 1, 2)]


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=80)
@given(st.data())
def test_transitions_agree_with_the_check(scheme, data):
    classes = tags_of(scheme)
    row = data.draw(st.lists(st.integers(0, len(classes) - 1), min_size=1, max_size=5))
    start, follow, end = transitions(classes, scheme)
    legal = start[row[0]] and end[row[-1]]
    legal = legal and all(follow[a, b] for a, b in itertools.pairwise(row))
    assert (not list(faults([classes[i] for i in row], scheme))) == bool(legal)


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ([["O"], ["O", "I-A"]], "iob2", r"y\[1\]\[1\].*'I-A' cannot follow 'O'"),
        ([["I-A"]], "iob2", r"y\[0\]\[0\].*cannot begin a sentence"),
        ([["B-A", "O"]], "bioes", r"y\[0\]\[1\].*'O' cannot follow 'B-A'"),
        ([["S-A", "B-A"]], "bmes", r"y\[0\]\[1\].*cannot end"),
        ([["NOUN"]], "iob2", r"'NOUN' has no prefix"),
        ([["B-A", "I-A"]], "bilou", r"y\[0\]\[1\].*cannot end"),
        ([["O"]], "bilo", "scheme='bilo'"),
    ],
)
def test_faults_are_named(tags, scheme, message):
    with pytest.raises(ValueError, match=message):
        check_tags(tags, scheme)


def test_spans_must_fit():
    with pytest.raises(ValueError, match="outside"):
        to_tags([("A", 0, 3)], 2)
    with pytest.raises(ValueError, match="overlaps"):
        to_tags([("A", 0, 2), ("B", 1, 3)], 3)


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 2**16), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 4)
)
def test_viterbi_is_the_best_of_all_sequences(seed, lengths, c):
    generator = np.random.default_rng(seed)
    tables = [generator.normal(size=(n, c)) for n in lengths]
    start, end = generator.random(c) > 0.3, generator.random(c) > 0.3
    follow = generator.random((c, c)) > 0.3
    found = viterbi(tables, start, follow, end)
    for scores, ours in zip(tables, found, strict=True):
        best = 0.0, []  # without any
        for row in itertools.product(range(c), repeat=len(scores)):
            legal = start[row[0]] and end[row[-1]]
            legal = legal and all(follow[a, b] for a, b in itertools.pairwise(row))
            total = sum(scores[i, k] for i, k in enumerate(row))
            if legal and (not best[1] or total > best[0]):
                best = total, list(row)
        assert ours.tolist() == best[1]


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**16), st.integers(0, 4))
def test_constrained_decoding_is_the_best_of_all_well_formed_sequences(scheme, seed, n):
    classes = tags_of(scheme)
    scores = np.random.default_rng(seed).normal(size=(n, len(classes)))
    index = {tag: i for i, tag in enumerate(classes)}
    best = max(
        well_formed(scheme, n), key=lambda row: sum(scores[i, index[t]] for i, t in enumerate(row))
    )
    assert decode([scores], classes, scheme, constrained=True) == [list(best)]


def test_constrained_decoding_of_a_length_that_the_classes_do_not_allow():
    scores = [np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [1.0, 2.0]])]
    # One token cannot be a span of two; its best tag stays.
    assert decode(scores, ["B-A", "E-A"], "bioes", constrained=True) == [["E-A"], ["B-A", "E-A"]]


def test_constrained_decoding_never_takes_a_tag_of_another_scheme():
    classes = ["O", "B-A", "I-A", "E-A", "[PAD]"]
    scores = np.array([[0.0, 1, 2, 3, 9], [0.0, 0, 1, 2, 9]])
    assert decode([scores], classes, "iob2", constrained=True) == [["B-A", "I-A"]]


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**16), st.integers(0, 9))
def test_constrained_decoding_is_well_formed(scheme, seed, n):
    classes = tags_of(scheme)
    scores = np.random.default_rng(seed).normal(size=(n, len(classes))) * 50
    scores[scores < -60] = -np.inf  # probabilities that rounded to 0
    (tags,) = decode([scores], classes, scheme, constrained=True)
    assert len(tags) == n
    check_tags([tags], scheme)
    (free,) = decode([scores], classes, scheme)
    assert free == [classes[i] for i in scores.argmax(axis=1)] if n else free == []
