"""The scripts on public data read their authors' files; the page shows what the scripts print."""

from __future__ import annotations

import re

import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

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


# ---- the copies of the hub, by the columns and features that their cards name

TEXT = Value("string")
WNUT17 = ["O", *(f"{side}-{kind}" for kind in ("corporation", "location") for side in "BI")]
HUB = {
    ("ucirvine/sms_spam", "train"): Dataset.from_dict(
        {"sms": ["See you\n", "Win, now!\n"], "label": [0, 1]},
        Features({"sms": TEXT, "label": ClassLabel(names=["ham", "spam"])}),
    ),
    ("leondz/wnut_17", "refs/convert/parquet", "test"): Dataset.from_dict(
        {"id": ["0", "1"], "tokens": [["In", "Ulm"], []], "ner_tags": [[0, 3], []]},
        Features(
            {
                "id": TEXT,
                "tokens": Sequence(TEXT),
                "ner_tags": Sequence(ClassLabel(names=WNUT17)),
            }
        ),
    ),
    ("google-research-datasets/go_emotions", "simplified", "validation"): Dataset.from_dict(
        {"text": ["Well done", "Hm"], "labels": [[1], [0, 2]], "id": ["a", "b"]},
        Features(
            {
                "text": TEXT,
                "labels": Sequence(ClassLabel(names=["anger", "joy", "neutral"])),
                "id": TEXT,
            }
        ),
    ),
}


@pytest.mark.parametrize(
    ("case", "part", "rows"),
    [
        ("sms_spam", [], (["See you\n", "Win, now!\n"], ["ham", "spam"])),
        ("wnut17", ["test"], ([["In", "Ulm"]], [["O", "B-location"]])),
        ("goemotions", ["dev"], (["Well done", "Hm"], [["joy"], ["anger", "neutral"]])),
    ],
)
def test_the_copy_of_the_hub_is_read(cases, monkeypatch, case, part, rows):
    monkeypatch.delenv("SKDICE_DATA", raising=False)
    monkeypatch.setattr(
        "datasets.load_dataset", lambda *names, **options: HUB[*names, *options.values()]
    )
    assert cases[case].load(*part) == rows


def test_the_page_shows_what_the_scripts_print():
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    assert len(shown) == 3
    code = "".join(path.read_text() for path in sorted(FOLDER.glob("*.py")))
    for words in ("F1 of TF-IDF", "false alarms of", "of all types, mode", "rarest in training"):
        assert words in code
        assert any(words in block for block in shown)
