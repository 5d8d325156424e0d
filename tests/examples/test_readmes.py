"""What `examples/paper` and `examples/benchmarks` hold is named on their pages, and is used."""

from __future__ import annotations

import re

import pytest

from tests.examples.scripts import PAPER, PEERS

BENCHMARKS = PEERS.parent
ROOT = PAPER.parents[1]
NAMED = {
    folder: (folder / "README.md").read_text("utf-8") if (folder / "README.md").exists() else ""
    for folder in (PAPER, BENCHMARKS)
}


@pytest.mark.parametrize("folder", NAMED, ids=lambda folder: folder.name)
def test_each_script_has_a_line_of_the_page(folder):
    scripts = {path.name for path in folder.glob("*.py")}
    listed = set(re.findall(r"\b(?!plot_)(\w+\.py)\b", NAMED[folder]))
    assert scripts <= listed
    assert listed <= scripts | {"peers.py"}


@pytest.mark.skipif(not (PAPER / "results").exists(), reason="an sdist has no records")
@pytest.mark.parametrize("folder", NAMED, ids=lambda folder: folder.name)
def test_each_record_has_a_script_that_writes_it(folder):
    code = "".join(path.read_text("utf-8") for path in folder.rglob("*.py")) + NAMED[folder]
    for path in (folder / "results").iterdir():
        assert path.stem in code or path.stem.startswith("table10-"), path.name


def test_each_benchmark_is_what_make_runs_or_a_part_of_it():
    made = (ROOT / "Makefile").read_text("utf-8")
    run = set(re.findall(r"examples/benchmarks/(\w+)\.py", made))
    parts = {
        name
        for path in BENCHMARKS.glob("*.py")
        for name in re.findall(r"^(?:from|import) (\w+)", path.read_text("utf-8"), re.M)
    }
    assert {path.stem for path in BENCHMARKS.glob("*.py")} <= run | parts
