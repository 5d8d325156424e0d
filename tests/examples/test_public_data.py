"""The scripts on public data read their authors' files; the page shows what the scripts print."""

from __future__ import annotations

import re

import pytest

from tests.examples.scripts import PAPER, scripts

FOLDER = PAPER.parent / "public_data"
PAGE = PAPER.parents[1] / "docs" / "public_data.md"


@pytest.fixture(scope="module")
def cases():
    with scripts(FOLDER, "sms_spam", "wnut17", "goemotions") as found:
        yield found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SKDICE_DATA", str(tmp_path))
    for name in ("sms_spam", "wnut17", "goemotions"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_messages_are_read_with_their_quotes(cases, folder):
    path = folder / "sms_spam" / "SMSSpamCollection"
    path.write_text('ham\tHe said "six, or seven\nspam\tWin, now!\n')
    assert cases["sms_spam"].load() == (['He said "six, or seven', "Win, now!"], ["ham", "spam"])


def test_tweets_are_read_by_part(cases, folder):
    for part, name in cases["wnut17"].FILES.items():
        (folder / "wnut17" / name).write_text(f"In\tO\n{part}\tB-location\n\t\nNo\tO\n")
        X, y = cases["wnut17"].load(part)
        assert [["In", part], ["No"]] == X
        assert y == [["O", "B-location"], ["O"]]


def test_comments_have_the_names_of_their_labels(cases, folder):
    (folder / "goemotions" / "labels.txt").write_text("joy\nanger\n")
    (folder / "goemotions" / "dev.tsv").write_text("Well done\t0\tid1\nHm\t0,1\tid2\n")
    assert cases["goemotions"].load("dev") == (
        ["Well done", "Hm"],
        [["joy"], ["joy", "anger"]],
    )


def test_the_page_shows_what_the_scripts_print():
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    assert len(shown) == 3
    code = "".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    for words in ("F1 of TF-IDF", "false alarms of", "of all types, mode", "rarest in training"):
        assert words in code
        assert any(words in block for block in shown)
