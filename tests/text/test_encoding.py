"""Containers, subword alignment and windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from skdice.backbones import load_tokenizer
from skdice.exceptions import TruncationWarning
from skdice.inputs.rows import object_array
from skdice.inputs.sentences import as_sentences, as_tags, tag_rows
from skdice.inputs.texts import as_texts
from skdice.metrics import span_f1_score
from skdice.text.encoding import Window, Windows, _cut, encode_sentences
from skdice.text.question_windows import encode_questions
from tests import data

TEXTS, PAIRS = data.TEXTS[:2], data.PAIRS[:2]


@pytest.mark.parametrize(
    "X",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=object).reshape(-1, 1),
        [[t] for t in TEXTS],
        pd.Series(TEXTS, index=[7, 3]),
        pd.DataFrame({"text": TEXTS}),
    ],
)
def test_every_container_of_texts(X):
    assert as_texts(X) == TEXTS


@pytest.mark.parametrize(
    "X",
    [PAIRS, [list(p) for p in PAIRS], np.array(PAIRS), pd.DataFrame(PAIRS), object_array(PAIRS)],
)
def test_every_container_of_pairs(X):
    assert as_texts(X) == PAIRS


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "0 samples"),
        ("one text", TypeError, "single string"),
        (["a", None], TypeError, r"X\[1\] is None"),
        (["a", float("nan")], TypeError, r"X\[1\] is nan"),
        (pd.Series(["a", pd.NA], dtype="string"), TypeError, r"X\[1\] is <NA>.*fill it with ''"),
        (["a", 1.5], TypeError, r"X\[1\] is 1.5.*convert it with str"),
        ([("a", "b"), "c"], ValueError, r"X\[1\]"),
        ([("a", "b", "c")], ValueError, "3 values"),
        (sparse.eye(2), TypeError, "sparse"),
        (np.array(3), TypeError, r"X is array\(3\): it must be a list"),
        ({"a", "b"}, TypeError, "X is {.*}: it must be a list"),
        ([{"a", "b"}], ValueError, r"X\[0\] is .*list of 2 text"),
        ([("a", "b"), {"c": 1, "d": 2}], ValueError, r"X\[1\] is .*list of 2 text"),
    ],
)
def test_bad_texts_name_the_row(X, error, message):
    with pytest.raises(error, match=message):
        as_texts(X)


def test_bad_sentences_name_the_first_at_fault():
    with pytest.raises(TypeError, match=r"X\[1\] is 'not split'"):
        as_sentences([["a"], "not split"])
    with pytest.raises(TypeError, match=r"X\[0\]\[1\] is 3"):
        as_sentences([["a", 3]])
    for row in ({"b", "c"}, {"b": 1, "c": 2}):
        with pytest.raises(TypeError, match=r"X\[1\] is .*list of tokens"):
            as_sentences([["a"], row])
        with pytest.raises(TypeError, match=r"y\[1\] is .*one tag for each token"):
            as_tags([["O"], row], [["a"], ["b", "c"]])
    for y, error, message in (
        ([["O"], ["O"], ["O"]], ValueError, r"y\[1\] has 1 tag, but X\[1\] has 2 tokens"),
        ([["O"], ["O", "O"]], ValueError, "3 sentences and y 2"),
        (["O", ["O", "O"], ["O", "O"]], TypeError, r"y\[0\] is 'O'"),
        ([["O"], ["O", "O"], ["O", float("nan")]], TypeError, r"y\[2\]\[1\] is nan"),
    ):
        with pytest.raises(error, match=message):
            as_tags(y, [["a"], ["b", "c"], ["d", "e"]])


def test_records_are_refused_with_the_way_out():
    for read in (as_texts, as_sentences):
        with pytest.raises(TypeError, match=r"X\[0\] is a dict with \['text', 'label'\]"):
            read([{"text": "a", "label": 1}])


def test_object_array_stays_one_dimensional():
    assert object_array([["a", "b"], ["c", "d"]]).shape == (2,)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(1, 6), max_size=60),
    st.integers(6, 15),
    st.integers(0, 5),
)
def test_windows_predict_every_word_once_and_fit(sizes, room, overlap):
    windows = _cut(np.array(sizes, dtype=np.int64), room, overlap)
    predicted = [w for *_, first, last in windows for w in range(first, last)]
    assert predicted == list(range(len(sizes)))
    for first, last, keep_first, keep_last in windows:
        assert sum(sizes[first:last]) <= room
        assert first <= keep_first < keep_last <= last


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_positions_point_at_each_words_first_subword(tiny_backbones, kind):
    tokenizer = load_tokenizer(tiny_backbones[kind])
    sentences = [["anna", "zq7", "went", "\u200b", ""], [], ["x" * 40] * 9 + ["rome"]]
    with pytest.warns(TruncationWarning, match="a word of more subwords than fit"):
        windows = encode_sentences(tokenizer, sentences, 20, stride=4)
    seen = {0: [], 2: []}
    for window in windows:
        assert len(window) <= 20
        seen[window.row] += window.words.tolist()
        for position, word in zip(window.positions, window.words, strict=True):
            own = tokenizer(sentences[window.row][word], add_special_tokens=False)["input_ids"]
            assert window.input_ids[position] == (own or [tokenizer.unk_token_id])[0]
    assert seen == {0: [0, 1, 2, 3, 4], 2: list(range(10))}
    # One sentence that fits is what the tokenizer itself makes of it.
    plain = tokenizer(["anna", "went"], is_split_into_words=True)
    (window,) = encode_sentences(tokenizer, [["anna", "went"]], 20)
    assert list(window.input_ids) == plain["input_ids"]
    kinds = window.token_type_ids
    assert (None if kinds is None else list(kinds)) == plain.get("token_type_ids")


def test_bad_sizes(tiny_backbone):
    tokenizer = load_tokenizer(tiny_backbone)
    with pytest.raises(ValueError, match="max_length=2"):
        encode_sentences(tokenizer, [["a"]], 2)
    with pytest.raises(ValueError, match="stride=18"):
        encode_sentences(tokenizer, [["a"]], 20, stride=18)


def byte_level(folder, steps=(), post=None):
    """A tokenizer of no class that knows of the space before a word, as ModernBERT's."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not steps)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, level]) if steps else level
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" the old bus, went to rome in 2012 don't"] * 20, trainer)
    if post is not None:
        tokenizer.post_processor = post
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    )
    fast.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "modernbert"}')
    return str(folder)


SPLIT = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+"), "isolated")


@pytest.mark.parametrize("steps", [(), (SPLIT,)])
def test_words_given_one_by_one_have_the_space_they_had_in_text(tmp_path, steps):
    folder = byte_level(tmp_path / "one", steps)
    stored = Tokenizer.from_file(f"{folder}/tokenizer.json")
    read = load_tokenizer(folder)
    read.save_pretrained(tmp_path / "two")  # and what is saved is read as one space, too
    (tmp_path / "two" / "config.json").write_text('{"model_type": "modernbert"}')
    for tokenizer in (read, load_tokenizer(str(tmp_path / "two"))):
        for words in (["the", "bus", "went"], ["bus,", "2,012!"], ["don't"]):
            given = tokenizer(words, is_split_into_words=True, add_special_tokens=False)
            want = [stored.encode(f" {word}").ids for word in words]
            assert given["input_ids"] == [i for ids in want for i in ids]
            assert given.word_ids() == [w for w, ids in enumerate(want) for _ in ids]


@pytest.mark.parametrize("steps", [(), (SPLIT,)])
@pytest.mark.parametrize(
    "post",
    [
        processors.ByteLevel(trim_offsets=True),
        processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2), add_prefix_space=False),
    ],
)
def test_offsets_are_of_the_text_without_the_space(tmp_path, steps, post):
    tokenizer = load_tokenizer(byte_level(tmp_path, steps, post))
    (window,) = encode_questions(
        tokenizer, [("the bus", "bus went to rome")], 64, stride=8, max_question_length=8
    )
    spans = window.offsets[1:].tolist()
    assert spans[0][0] == 0
    text = "bus went to rome"
    assert "".join(text[a:b] for a, b in spans) == text.replace(" ", "")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 70_000), max_size=9), min_size=1, max_size=12))
def test_windows_give_back_what_they_took_in(rows):
    made = [
        Window(row, None, np.arange(len(row)), np.array(row, dtype=np.int64), 7 * i)
        for i, row in enumerate(rows)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdice.text.encoding.BLOCK", 4)  # so that columns are joined
        windows = Windows.of(iter(made))
    assert len(windows) == len(rows)
    assert windows.lengths.tolist() == [len(row) for row in rows]
    assert windows.rows.tolist() == [7 * i for i in range(len(rows))]
    for window, want in zip(windows, made, strict=True):
        assert window.input_ids.tolist() == window.words.tolist() == want.input_ids
        assert window.input_ids.dtype == np.int32  # though they are kept in fewer bytes
        assert window.positions.tolist() == want.positions.tolist()
        assert window.token_type_ids is None
        assert window.row == want.row
    np.testing.assert_array_equal(windows[-1].words, windows[len(rows) - 1].words)


def test_windows_take_few_bytes(tiny_backbone):
    sentences = [["anna", "went", "to", "rome"] * 5] * 3000
    windows = encode_sentences(load_tokenizer(tiny_backbone), sentences, 40)
    columns = [column for column in windows.columns.values() if hasattr(column, "values")]
    kept = sum(c.values.nbytes + c.sizes.nbytes + c.ends.nbytes for c in columns)
    assert kept < 0.5 * 2 * 8 * windows.lengths.sum()  # half of ids and labels of 8 bytes
    assert not list(encode_sentences(load_tokenizer(tiny_backbone), [[]], 40))


def test_one_mechanism_reads_the_rows_of_every_container():
    """Metrics, estimators and writers of files refuse and take the same ones."""
    tags = [["B-A", "O"], ["O", "O"]]
    for container in (np.array(tags), pd.Series(tags), object_array(tags), tuple(tags)):
        assert tag_rows(container) == tags
        assert as_tags(container, [["x", "y"]] * 2) == tags
        assert span_f1_score(container, container) == 1
    for bad in (iter(tags), {"a": tags}, "B-A", None, list):
        with pytest.raises(TypeError, match=r"^y is "):
            tag_rows(bad)
        with pytest.raises(TypeError, match=r"^X is "):
            as_sentences(bad)
        with pytest.raises(TypeError, match=r"^y_true is "):
            span_f1_score(bad, tags)
