"""CoNLL and CoNLL-U files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skdice.datasets import read_conll, read_dataset, write_conll
from tests.datasets.files import put

PLAIN = ([["Ann", "sleeps"], ["Rome"]], [["B-PER", "O"], ["B-LOC"]])


@pytest.mark.parametrize(
    "text",
    [
        "Ann\tB-PER\nsleeps\tO\n\nRome\tB-LOC\n",
        "Ann B-PER\nsleeps O\n\nRome B-LOC",
        "\n\nAnn\tB-PER\nsleeps\tO\n \t \n\n\nRome\tB-LOC\n\n\n",
        "\ufeffAnn\tB-PER\r\nsleeps\tO\r\n\r\nRome\tB-LOC\r\n",
        "-DOCSTART- O\n\nAnn B-PER\nsleeps O\n\n-DOCSTART- O\n\nRome B-LOC\n",
        "# a comment of several words\nAnn\tB-PER\nsleeps\tO\n\n# id = 2\nRome\tB-LOC\n",
        "Ann\tB-PER\n# amid a sentence\nsleeps\tO\n\nRome\tB-LOC\n",
        "# text = Ann\n# id 1\nAnn\tB-PER\nsleeps\tO\n\n# id 2\tdomain=dev\nRome\tB-LOC\n",
        "# id 1 domain=dev\nAnn _ _ B-PER\nsleeps _ _ O\n\n# id 2 domain=dev\nRome _ _ B-LOC\n",
        "Ann\tB-PER\nsleeps\tO\n-DOCSTART- -X- O\nRome\tB-LOC\n",
        "\n" * 6000 + "Ann\tB-PER\nsleeps\tO\n\nRome\tB-LOC\n",
    ],
)
def test_conll_variants(tmp_path, text):
    path = put(tmp_path, text)
    assert read_conll(path) == PLAIN
    assert read_dataset(path).task == "tagging"


def test_conll_columns_in_any_order(tmp_path):
    path = put(tmp_path, "B-PER 1 NNP Ann\nO 2 VB sleeps\n\nB-LOC 1 NNP Rome\n")
    assert read_conll(path, token_column=3, tag_column=0) == PLAIN
    assert read_conll(path, token_column=-1, tag_column=2)[1] == [["NNP", "VB"], ["NNP"]]
    with pytest.raises(ValueError, match="tag_column=7 is beyond the 4"):
        read_conll(path, tag_column=7)


def test_conll_takes_a_hash_as_a_token(tmp_path):
    text = "Ann\tB-PER\n\n#\tO\n1\tO\n\n#tag\tO\n"
    assert read_conll(put(tmp_path, text))[0] == [["Ann"], ["#", "1"], ["#tag"]]
    assert read_conll(put(tmp_path, "#hot\tO\nnow\tO\n"))[0] == [["#hot", "now"]]
    assert read_conll(put(tmp_path, "#a b\tO\n"))[0] == [["#a b"]]
    # Beside comments of as many columns, by its tag; without comments, whatever it has.
    text = "# id 1\nAnn O\n\n# x\n# O\n1 O\n"
    assert read_conll(put(tmp_path, text))[0] == [["Ann"], ["#", "1"]]
    assert read_conll(put(tmp_path, "Ann O\n\n# B-X\n"))[1] == [["O"], ["B-X"]]


def test_conll_tokens_may_hold_odd_spaces(tmp_path):
    text = "a\u2028b\tO\n10\u00a0000\tO\n"
    assert read_conll(put(tmp_path, text))[0] == [["a\u2028b", "10\u00a0000"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ann\tB-PER\nsleeps\n", "line 2: 1 column"),
        ("Ann\tB-PER\nsleeps\tO\tx\n", "line 2: 3 column"),
        ("Ann\tB-PER\nsings\tO\ntoday\t\n", "line 3: no tag in 'today"),
        ("Ann\nsleeps\n", "line 1: one column only"),
        ("", "is empty"),
        ("-DOCSTART- O\n", "no tagged token"),
    ],
)
def test_bad_conll_names_the_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_conll(put(tmp_path, text))


CONLLU = """\
# sent_id = 1
1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnos\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tgone\tgo\tVERB\tV\t_\t_\t_\t_\t_

# sent_id = 2
1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_
"""


def test_conllu_skips_multiword_and_empty_nodes(tmp_path):
    path = put(tmp_path, CONLLU, "a.conllu")
    data = read_dataset(path)
    assert (data.X, data.y) == ([["vamos", "nos"], ["#"]], [["VERB", "PRON"], ["SYM"]])
    assert read_dataset(path, tag_column="deprel").y == [["root", "obj"], ["root"]]
    for name in ("pos", "misc"):  # of which the last holds no tags
        with pytest.raises(ValueError, match=f"tag_column='{name}' must be one of"):
            read_dataset(path, tag_column=name)
    with pytest.raises(ValueError, match="line 9: 3 column"):
        read_dataset(put(tmp_path, CONLLU + "2\ta\tb\n"))
    with pytest.raises(TypeError, match="comment='#' is no option of the reader of CoNLL-U"):
        read_dataset(path, comment="#")


LOST = ("-DOCSTART-", "\ufeff")  # at the start of a line


letters = st.characters(codec="utf-8", exclude_categories=("Z", "C"), include_characters=" ")


token = st.text(letters, max_size=5).map(str.strip).filter(bool) | st.sampled_from(
    ["#", "#a b", "# 1", "-DOCSTART-", "-DOC b c", "\ufeffa"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(token, st.sampled_from(["O", "B-A", "I-A"])), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(tmp_path, rows):
    X, y = [[t for t, _ in r] for r in rows], [[t for _, t in r] for r in rows]
    try:
        path = write_conll(tmp_path / "w.conll", X, y)
    except ValueError:
        assert any(token.startswith(LOST) for row in X for token in row)
    else:
        assert read_conll(path) == (X, y)


def test_write_conll_refuses_what_it_could_not_read(tmp_path):
    for X, y, message in (
        ([["a b\tc"]], [["O"]], "has no place"),
        ([["a"]], [["O", "O"]], "1 tokens"),
        ([["a"]], [], "1 sentence and"),
        ([[" "]], [["O"]], "has no place"),
        ([[" a"]], [["O"]], "white space around"),
        ([["a"]], [["O\u00a0"]], "white space around"),
        ([["#"], ["a"] * 20], [["N"], ["O"] * 20], r"X\[0\] would not be read again"),
        ([["#", "a"]], [["a b", "c"]], "X would not be read again: .* may be a comment"),
        ([[], ["\ufeffa"]], [[], ["O"]], r"X\[1\] would not be read again"),
        ([["a"], ["b", "-DOCSTART-"]], [["O"], ["O", "O"]], r"X\[1\] would not be read again"),
        ([["a"], ["-DOCSTART-"]], [["O"], ["O"]], r"X\[1\] would not be read again"),
    ):
        with pytest.raises(ValueError, match=message):
            write_conll(tmp_path / "x.conll", X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "X", "y"),
    [
        # Ids with ranges, and the tags in the only column that is left.
        ("1\tSi\tX\n2\tyo\tX\n2.1\tvoy\tV\n\n1-2\tdel\t_\n1\tde\tY\n2\tel\tZ\n",
         [["Si", "yo"], ["de", "el"]], [["X", "X"], ["Y", "Z"]]),
        # CoNLL-U Plus.
        ("# global.columns = ID FORM UPOS\n1\tHi\tX\n2\tyou\tY\n\n3\tYo\tX\n",
         [["Hi", "you"], ["Yo"]], [["X", "Y"], ["X"]]),
        # GermEval 2014, whose comments name the source behind a tab.
        ("#\thttp://x.org/A [2009-10-17]\n1\tOslo\tB-LOC\tO\n\n#\tn-tv vom 26.02. [2005-02-26]\n"
         "1\tAnna\tB-PER\tO\n", [["Oslo"], ["Anna"]], [["B-LOC"], ["B-PER"]]),
        ("#\tZeitung 2005\nIn\tO\nOslo\tB-LOC\n\n#\tZeitung 2006\nAnna\tB-PER\n",
         [["In", "Oslo"], ["Anna"]], [["O", "B-LOC"], ["B-PER"]]),
    ],
)  # fmt: skip
def test_ids_and_sources_are_no_tokens(tmp_path, text, X, y):
    path = tmp_path / "a.txt"
    path.write_text(text)
    data = read_dataset(path)
    assert (data.task, data.X, data.y) == ("tagging", X, y)


def test_of_several_columns_that_may_hold_tags_none_is_taken(tmp_path):
    path = put(tmp_path, "1\tSi\tsi\tX\n\n1\tNo\tno\tY\n", "a.txt")  # CoNLL-U's first four
    with pytest.raises(
        ValueError, match=r"column 2 \(si, no\), column 3 \(X, Y\): give tag_column"
    ):
        read_dataset(path)
    assert read_conll(path, tag_column=3) == ([["Si"], ["No"]], [["X"], ["Y"]])
    two = "Ann\tB-PER\tB-x\nsings\tO\tB-y\n\nIt\tO\tO\nrains\tO\tO\n"
    with pytest.raises(ValueError, match=r"column 1 .*, column 2 .*: give tag_column"):
        read_conll(put(tmp_path, two))
    assert read_conll(put(tmp_path, two), tag_column=1)[1] == [["B-PER", "O"], ["O", "O"]]


MIDDLE = ([["Ada", "sings"], ["It", "rains"]], [["B-PER", "O"], ["O", "O"]])


@pytest.mark.parametrize("more", [("NNP", "VBZ"), ("_", "NoSpaceAfter"), ("0.9", "0.8"), "13"])
def test_the_tags_are_where_the_patterns_are_and_not_in_the_last_column(tmp_path, more):
    a, b = more
    text = f"Ada\tB-PER\t{a}\nsings\tO\t{b}\n\nIt\tO\t{a}\nrains\tO\t{b}\n"
    assert read_conll(put(tmp_path, text)) == MIDDLE


@pytest.mark.parametrize(
    "header", ["words\tlabels", "text\tlabels", "Token\tEntity", "tokens\ttags", "a\tb"]
)
def test_a_first_line_without_a_tag_is_a_header(tmp_path, header):
    text = f"{header}\nAda\tB-PER\nsings\tO\n\nIt\tO\nrains\tO\n"
    data = read_dataset(put(tmp_path, text, "a.tsv"))
    assert ((data.X, data.y), data.task) == (MIDDLE, "tagging")
    hipe = (
        "TOKEN\tCOARSE\tMETO\tMISC\n# document_id = 1\nAda\tB-PER\tO\t_\n"
        "sings\tO\tO\tEndOfLine\n\n# document_id = 2\nIt\tO\tO\t_\nrains\tO\tO\t_\n"
    )
    path = put(tmp_path, hipe, "b.tsv")
    assert read_conll(path) == MIDDLE
    assert read_conll(path, tag_column="METO")[1] == [["O", "O"], ["O", "O"]]


def test_what_looks_like_a_header_or_a_comment_comes_back(tmp_path):
    for X, y in (
        ([["token", "x"]], [["tag", "y"]]),
        ([["a", "b"]], [["first", "B-PER"]]),
        ([["#", "b"]], [["B-a b", "O"]]),
        ([["#", "b"]], [["SYM", "NN"]]),
        ([["# 1", "b"]], [["O", "O"]]),
    ):
        assert read_conll(write_conll(tmp_path / "w.conll", X, y)) == (X, y)


def test_a_comment_that_may_be_a_token_is_refused(tmp_path):
    path = put(tmp_path, "# one\nthe DET\n\n# two\nbus NOUN\n")
    with pytest.raises(ValueError, match=r"line 1: '# one' may be .* comment='#', or by comment=N"):
        read_conll(path)
    assert read_conll(path, comment="#")[0] == [["the"], ["bus"]]
    assert read_conll(path, comment=None)[0] == [["#", "the"], ["#", "bus"]]
