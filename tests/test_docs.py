"""The site: its pages run, every public name has a page and a whole docstring."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest
import typer.main

from skdice.backbones import DEFAULT_BACKBONE
from skdice.cli.app import app
from skdice.losses import Loss

DOCS = Path(__file__).parents[1] / "docs"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


names = _load("names")
PUBLIC = [
    (name, thing)
    for name, thing in names.public_names().items()
    if inspect.isclass(thing) or inspect.isfunction(thing)
]
# Pages that teach, and pages that also show code.
PAGES = names.guide_pages()
TUTORIALS = sorted((DOCS / "tutorials").glob("plot_*.py"))
PROGRAMS = ("accelerate", "cat", "cd", "git", "make", "pip", "python", "torchrun")
RUN = ("python", "console")
SHOWN_ONLY = ("text", "{toctree}", "{index}", "{figure}", "{image}")  # no code
NOT_RUN = re.compile(r"^<!-- not run: [^>]+ -->\n+```.*?^```$", re.S | re.M)
SHOWN = [*PAGES, *(DOCS / f"{name}.md" for name in ("index", "install", "coming_from", "faq"))]


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
    things = {id(thing): name for name, thing in PUBLIC}
    listed = listed_names()
    for name in listed:
        package, _, attribute = name.rpartition(".")
        things.pop(id(getattr(importlib.import_module(package), attribute)), None)
    assert not things, "add these to docs/api.md"


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one[0]) for one in PUBLIC])
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


def test_every_public_name_has_an_example_that_uses_it():
    used = names.examples()
    lacking = []
    for name, thing in names.public_names().items():
        shown = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
        if not used[name] and not shown:
            lacking.append(name)
    assert not lacking, "show these in their docstrings or in docs/gallery"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_that_teaches_leads_to_the_api_and_has_a_picture(page):
    text = page.read_text()
    if page.suffix == ".py":  # a script of the gallery
        assert names.used_in(text)
        assert "plt.show()" in text or "show_entities(" in text  # which draws by itself
        return
    assert names.mentioned_in(text), "name what it uses in inline code: it becomes a link"
    pictures = [*re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", text)]
    assert pictures, "a page without a picture, or one whose picture has no words"
    for picture in pictures:
        drawn = re.search(r"(?:^|/)auto_gallery/(\w+)/images/sphx_glr_(\w+)_\d+\.png$", picture)
        if drawn:
            assert (DOCS / "gallery" / drawn[1] / f"{drawn[2]}.py").exists(), picture
        else:
            assert (page.parent / picture).exists(), picture


def blocks(page):
    """Kind and code of the blocks of a page, less those that say why nobody can run them here."""
    text = re.sub(NOT_RUN, "", page.read_text())
    return re.findall(r"^```([^\n`]*)\n(.*?)^```$", text, re.S | re.M)


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_every_block_of_code_of_a_page_is_run(page):
    """Python by the test below. The commands of skdice are parsed here."""
    if page.suffix == ".py":  # the site runs it
        return
    for kind, code in blocks(page):
        assert kind.split(" ")[0] in RUN + SHOWN_ONLY, f"no test runs it:\n{code}"
        for line in code.splitlines() if kind == "console" else ():
            if line.startswith("$ "):
                _check_command(line)
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)
    assert not re.findall(r"^(?:\n {4}\S.*)", prose, re.M), "write it in a block that says its kind"


def _check_command(line):
    """Parse a command as `skdice` does, without running it; others install or start it."""
    for part in line.removeprefix("$ ").partition(" #")[0].rstrip(" &").split(" | "):
        program, *words = shlex.split(part.partition(" < ")[0])
        if program != "skdice":
            assert program in PROGRAMS, f"no test runs it: {line}"
            continue
        group = typer.main.get_command(app)
        context = group.make_context("skdice", [], resilient_parsing=True)
        name, command, rest = group.resolve_command(context, words)
        try:
            command.make_context(name, rest)
        except click.BadParameter as error:  # its files do not exist here
            if "does not exist" not in str(error):
                raise


@pytest.fixture(scope="module")
def small_default(tmp_path_factory, build_backbone):
    """A folder with a random encoder of the default's depth and length."""
    folder = str(tmp_path_factory.mktemp("default"))
    return build_backbone(folder, num_hidden_layers=6, max_position_embeddings=512)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is experimental:Warning")  # Optuna's plots
@pytest.mark.parametrize(
    "page", [p for p in SHOWN if p.suffix == ".md"], ids=lambda page: page.stem
)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, small_default):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.setattr(
        "skdice.backbones._cached_snapshot",
        lambda name: small_default if name == DEFAULT_BACKBONE else None,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skdice.estimators.schedule.choose_epochs", lambda *rows: 1)
    space: dict[str, object] = {}
    for kind, code in blocks(page):
        if kind == "python":
            # The shortest fits that show that every line runs.
            code = re.sub(r"max_epochs=\d+", "max_epochs=1", code)
            code = re.sub(r"n_trials=\d\d+", "n_trials=2", code)
            exec(compile(code, page.name, "exec"), space)


def test_links_lead_to_pages_that_exist():
    for page in [DOCS.parent / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if "://" in path:
                continue
            if re.search("auto_(gallery|tutorials)/", path):  # made from a script, its pictures too
                made = re.sub(r"images/sphx_glr_(\w+)_\d+\.png", r"\1.rst", path)
                path = made.replace("auto_gallery/index.rst", "gallery/GALLERY_HEADER.rst")
                path = re.sub(r"auto_(gallery|tutorials)/(.+)\.rst", r"\1/\2.py", path)
            file = (page.parent / path) if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.+)$", file.read_text(), re.M)
                slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
                assert anchor in slugs, f"{page.name}: {target}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_names_what_exists(page):
    """The site runs them, which takes minutes. Here they are read."""
    text = page.read_text()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "skdice":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            thing = names.public_names().get(names.targets().get(node.func.id, ""))
            known = inspect.signature(thing).parameters if thing is not None else {}
            if not any(one.kind is one.VAR_KEYWORD for one in known.values()) and known:
                unknown = {word.arg for word in node.keywords} - {None, *known}
                assert not unknown, f"{node.func.id} takes no {unknown}"
    for kind, where in re.findall(r"sphx_glr_auto_(tutorials|gallery)_([\w.]+\.py)", text):
        files = [path.relative_to(DOCS / kind) for path in (DOCS / kind).rglob("plot_*.py")]
        assert where in {"_".join(path.parts) for path in files}, where
    for where in re.findall(r"<\.\./([\w/]+)\.html>", text):
        assert (DOCS / f"{where}.md").exists(), where


@pytest.mark.parametrize(
    "word", ["install", "multi-label", "threshold", "overlap loss", "prefit", "mlflow"]
)
def test_the_search_finds_words_of_newcomers(word):
    """Sphinx ranks titles, terms of the glossary and entries of the index above plain text."""
    heads = r"^(?:#+ (.+)|```\{index\} (.+))$|^(\S.*)\n  \S"
    texts = [page.read_text() for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    ranked = [part for text in texts for found in re.findall(heads, text, re.M) for part in found]
    assert any(word in part.lower() for part in ranked)


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


def test_every_path_that_contributing_names_exists():
    text = (DOCS / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:skdice|tests|examples|docs)/[\w./]*)`", text))
    assert len(named) > 15
    assert not [path for path in named if not (DOCS.parent / path).exists()]
