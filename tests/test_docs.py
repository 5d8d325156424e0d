"""The site: its pages run, every public name has a page and a whole docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from skdice.losses import Loss

DOCS = Path(__file__).parents[1] / "docs"
PACKAGES = (
    "skdice", "skdice.losses", "skdice.losses.functional", "skdice.model_selection",
    "skdice.resampling", "skdice.metrics", "skdice.inspection", "skdice.datasets", "skdice.export",
)  # fmt: skip
PAGES = [DOCS / "start.md", *sorted((DOCS / "guide").glob("*.md"))]


def public_names():
    """Qualified name and object of all that is public, each object once."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        for name in names:
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("skdice")
            if ours and (inspect.isclass(thing) or inspect.isfunction(thing)):
                found.setdefault(id(thing), (f"{package}.{name}", thing))
    return list(found.values())


def listed_names():
    """Qualified names of all objects that the API reference lists."""
    text = (DOCS / "api.md").read_text()
    parts = re.split(r"\.\. currentmodule:: (\S+)", text)[1:]
    return {
        f"{package}.{name}"
        for package, body in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"^   (\w+)$", body, re.M)
    }


def test_every_public_name_is_in_the_api_reference():
    things = {id(thing): name for name, thing in public_names()}
    listed = listed_names()
    for name in listed:
        package, _, attribute = name.rpartition(".")
        things.pop(id(getattr(importlib.import_module(package), attribute)), None)
    assert not things, "add these to docs/api.md"


@pytest.mark.parametrize(
    ("name", "thing"), [pytest.param(*found, id=found[0]) for found in public_names()]
)
def test_docstrings_have_the_sections_of_numpydoc(name, thing):
    doc = inspect.getdoc(thing) or ""
    assert doc.strip(), "no docstring"
    summary = doc.split("\n\n")[0]
    assert summary.rstrip().endswith((".", "?"))
    own = thing.__init__ if inspect.isclass(thing) else thing
    takes = [p for p in inspect.signature(own).parameters if p not in ("self", "args", "kwargs")]
    if thing is Loss:  # its parameters are those of each subclass
        return
    if takes:
        section = re.search(r"^(Parameters|Attributes)\n-{4,}", doc, re.M)
        elsewhere = re.search(r"(see|those of) `\w+`", doc, re.I)
        assert section or elsewhere, "no section Parameters"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skdice.estimators.chosen.choose_epochs", lambda *rows: 1)
    space: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        # The shortest fits that show that every line runs.
        block = re.sub(r"max_epochs=\d+", "max_epochs=1", block)
        exec(compile(block, page.name, "exec"), space)


def test_links_lead_to_pages_that_exist():
    for page in [DOCS.parent / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if "://" in path or path.startswith("auto_gallery"):
                continue
            file = (page.parent / path) if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.+)$", file.read_text(), re.M)
                slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
                assert anchor in slugs, f"{page.name}: {target}"


def test_no_page_takes_the_name_of_a_page_of_sphinx():
    names = {path.stem for path in DOCS.glob("*.md")}
    assert not names & {"search", "genindex", "py-modindex"}


def test_the_commands_of_the_start_page_write_to_new_folders():
    text = (DOCS / "start.md").read_text()
    saved, written = (
        re.findall(r'save_pretrained\("(.+?)"\)', text),
        re.findall(r"--out (\S+)", text),
    )
    assert saved
    assert written
    assert not set(saved) & set(written)
