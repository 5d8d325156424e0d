"""The site: its pages run, every public name has a page and a whole docstring."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import sys
import warnings
from pathlib import Path

import click
import pytest
import typer.main

from skdice.backbones import DEFAULT_BACKBONE
from skdice.cli.app import app
from skdice.datasets import load_town_notes
from skdice.losses import Loss

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


names, pages = _load("names"), _load("pages")
PUBLIC = [
    (name, thing)
    for name, thing in names.public_names().items()
    if inspect.isclass(thing) or inspect.isfunction(thing)
]
# Pages that teach, and pages that also show code.
PAGES = names.guide_pages()
EXAMPLES = names.EXAMPLES
PROGRAMS = ("accelerate", "cat", "cd", "git", "make", "pip", "python", "torchrun")
RUN = ("python", "console")
SHOWN_ONLY = ("text",)  # no code
NOT_RUN = re.compile(r"^<!-- not run: [^>]+ -->\n+```.*?^```$", re.S | re.M)
OTHERS = ("index", "install", "need", "public_data", "coming_from", "faq", "warnings")
PUBLIC_DATA = sorted((ROOT / "examples" / "public_data").glob("*.py"))
ON_SITE = [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("guide/*.md"))]
# All that is read in a checkout.
WRITTEN = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("examples/**/*.md")), *ON_SITE]
# Pictures and records are not in an sdist.
needs_pictures = pytest.mark.skipif(not (DOCS / "images").exists(), reason="not a checkout")
SHOWN = [*PAGES, *(DOCS / f"{name}.md" for name in OTHERS)]


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
    used = set().union(*(names.used_in(names.code_of(page)) for page in PAGES))
    lacking = []
    for name, thing in names.public_names().items():
        shown = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
        if name not in used and not shown:
            lacking.append(name)
    assert not lacking, "show these in their docstrings or in examples/"


@needs_pictures
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_that_teaches_leads_to_the_api_and_has_a_picture(page):
    text = page.read_text()
    if page.suffix == ".py":  # an example
        assert names.used_in(text)
        drawn = ("plt.show()", "show_entities(", ".. image:: /images/")
        assert any(word in text for word in drawn)
        return
    assert names.mentioned_in(text), "name what it uses in inline code: it becomes a link"
    pictures = [*re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", text)]
    assert pictures, "a page without a picture, or one whose picture has no words"
    for picture in pictures:
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
        for line in code.replace("\\\n", "").splitlines() if kind == "console" else ():
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
    """A folder with a random encoder of the default's length; pages freeze four layers."""
    folder = str(tmp_path_factory.mktemp("default"))
    return build_backbone(folder, num_hidden_layers=4, max_position_embeddings=512)


def few_notes(subset="all"):
    """A third of the notes."""
    X, y = load_town_notes(subset=subset)
    return X[::3], y[::3]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is experimental:Warning")  # Optuna's plots
@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page, tmp_path, monkeypatch, set_recipe, small_default
):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.setattr(
        "skdice.backbones._cached_snapshot",
        lambda name, revision: small_default if name == DEFAULT_BACKBONE else None,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    set_recipe(MOST_EPOCHS=1)
    monkeypatch.setattr("skdice.datasets.load_town_notes", few_notes)
    space: dict[str, object] = {}
    shown = blocks(page)
    if page.suffix == ".py":
        shown = [("python", page.read_text())]
        for package in re.findall(r"^(?:import|from) (\w+)", shown[0][1], re.M):
            pytest.importorskip(package)  # what only the site installs
        # A random encoder learns nothing, and fits warn of it.
        warnings.simplefilter("ignore")
    for kind, code in shown:
        if kind == "python":
            # The shortest fits that show that every line runs.
            code = re.sub(r"max_epochs=\d+", "max_epochs=1", code)
            code = re.sub(r"n_trials=\d\d+", "n_trials=2", code)
            code = re.sub(r"seeds=\d+", "seeds=1", code)
            if named := re.match(r"# (\w+\.py)\n", code):
                Path(named[1]).write_text(code)
            exec(compile(code, page.name, "exec"), space)


def links_of(text):
    """Targets of the links and pictures of a page, as a reader of GitHub sees it."""
    found = re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", pages.prose_of(text))
    found += re.findall(r"^\[[^\]]+\]: (\S+)", text, re.M)
    return [*found, *re.findall(r"<(?:a|img)\b[^>]*(?:href|src)=\"([^\"]+)\"", text)]


@needs_pictures
@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_work_in_a_checkout_and_on_github(page):
    raw = pages.REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
    for target in links_of(page.read_text()):
        path, _, anchor = target.partition("#")
        for ours in (f"{pages.REPOSITORY}/blob/main/", raw):
            if path.startswith(ours):
                path = os.path.relpath(ROOT / path.removeprefix(ours), page.parent)
        if re.match("[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not re.search("/docs/(auto_|api/|_build)", str(file)), target
        if anchor:
            assert anchor in pages.anchors_of(file.read_text()), target


@needs_pictures
@pytest.mark.parametrize("page", ON_SITE, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_work_on_the_site(page):
    """Sphinx is not installed here. What it is given are pages, scripts that it makes pages of,
    pictures and addresses.
    """
    text = pages.for_the_site(page.read_text(), page.relative_to(ROOT).as_posix())
    for target in links_of(text):
        path, _, anchor = target.partition("#")
        if path.startswith("https:") or not path:
            continue
        file = (page.parent / path).resolve()
        made = re.fullmatch(rf"{DOCS}/auto_examples/(.+)\.rst", str(file))
        if made:
            assert made[1] == "index" or ROOT / "examples" / f"{made[1]}.py" in EXAMPLES, target
            continue
        assert file.exists(), target
        assert file.suffix in (".svg", ".png") or file in ON_SITE, target
        if anchor:
            heads = re.findall(r"^#{1,3} .*$", pages.prose_of(file.read_text()), re.M)
            deeper = pages.anchors_of(file.read_text()) - pages.anchors_of("\n".join(heads))
            assert anchor not in deeper, f"{target}: myst_heading_anchors is 3"


def test_the_site_reads_what_github_hides_and_makes_pages_of_scripts():
    text = "<!-- :::{index} a, b\n::: -->\n[a](../../examples/texts/plot_spam.py#next) "
    text += "[b](../../examples/README.md) [c](../../Makefile) ![d](../images/a.svg)"
    assert pages.for_the_site(text, "docs/guide/x.md") == (
        ":::{index} a, b\n:::\n[a](../auto_examples/texts/plot_spam.rst#next) "
        f"[b](../auto_examples/index.rst) [c]({pages.REPOSITORY}/blob/main/Makefile) "
        "![d](../images/a.svg)"
    )


def test_anchors_are_those_of_github():
    text = "# A `b_c` (d)\n## Same\n```text\n# no\n```\n### Same\n## [A link](to.md): here\n"
    assert pages.anchors_of(text) == {"a-b_c-d", "same", "same-1", "a-link-here"}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_github_shows_no_markup_of_the_site(page):
    if page == DOCS / "api.md":  # lists of names, from which Sphinx makes the reference
        return
    text = page.read_text()
    assert not text.startswith("---"), "GitHub shows front matter as a table"
    assert not re.findall(r"^ *`{3,}\{.*", text, re.M), "GitHub shows this directive as code"
    prose = pages.prose_of(text)
    assert not re.findall(r"\{[\w:-]+\}``|^ *:{3,}.*|\{\{.*|^\([\w-]+\)=$", prose, re.M)


def test_the_address_of_the_site_stands_in_one_place():
    address = pages.PROJECT["urls"]["Documentation"]
    assert address.startswith("https://")
    files = [*WRITTEN, *ROOT.glob(".github/**/*.yml"), DOCS / "conf.py", ROOT / "Makefile"]
    assert not [file for file in files if address.rstrip("/") in file.read_text()]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_its_actions_and_runs_what_make_has(workflow):
    text, makefile = workflow.read_text(), (ROOT / "Makefile").read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    targets = re.findall(r"target: ([\w-]+)", text)
    for command in re.findall(r"run: (\S.*)", text):
        program, *words = command.split()
        assert program == "make", f"{command}: give it a target of the Makefile"
        targets += [word for word in words if re.fullmatch(r"[\w-]+", word)]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_site_that_is_published_is_what_make_docs_builds():
    text = (ROOT / ".github" / "workflows" / "site.yml").read_text()
    (folder,) = re.findall(r"path: (docs/\S+)", text)
    assert "run: make docs\n" in text
    assert f"-b html docs {folder}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("page", [*EXAMPLES, *PUBLIC_DATA], ids=lambda page: page.stem)
def test_an_example_names_what_exists(page):
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
    for where in re.findall(r":doc:`(?:[^`]*<)?/([\w/]+)>?`", text):
        assert (DOCS / f"{where}.md").exists(), where
    assert "html>" not in text, "link with :doc:, which Sphinx checks"


def test_the_examples_are_a_list_of_tasks():
    text = (ROOT / "examples" / "README.md").read_text()
    listed = re.findall(r"^- \[(.+)\]\((\w+)/(plot_\w+\.py)\): \S", text, re.M)
    found = [(page.read_text().splitlines()[1], page.parent.name, page.name) for page in EXAMPLES]
    assert sorted(listed) == sorted(found)
    assert len(EXAMPLES) <= 23
    lengths = {page.name: len(page.read_text().splitlines()) for page in EXAMPLES}
    assert not {name: n for name, n in lengths.items() if n > 120}
    sections = set(
        re.findall(
            r'"(\w+)"',
            (DOCS / "conf.py").read_text().partition("SECTIONS = (")[2].partition(")")[0],
        )
    )
    assert sections == {page.parent.name for page in EXAMPLES}
    assert all((page.parent / "GALLERY_HEADER.rst").exists() for page in EXAMPLES)


@pytest.mark.parametrize(
    "word", ["install", "multi-label", "threshold", "overlap loss", "prefit", "mlflow"]
)
def test_the_search_finds_words_of_newcomers(word):
    """Sphinx ranks titles and entries of the index above plain text."""
    heads = r"^(?:#+ (.+)|<!-- :::\{index\} (.+))$"
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


def code_lines(page):
    """The code and the output that a page shows; of a script all but its prose."""
    if page.suffix == ".py":
        text = page.read_text().split('"""', 2)[2]
        return [line for line in text.splitlines() if not line.startswith("#")]
    shown = re.findall(r"^```(?:python|console|text)\n(.*?)^```$", page.read_text(), re.S | re.M)
    return "".join(shown).splitlines()


@pytest.mark.parametrize("page", SHOWN, ids=lambda p: p.stem)
def test_code_has_at_most_76_columns_as_the_site_cuts_the_rest(page):
    assert not [line for line in code_lines(page) if len(line) > 76]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_the_block_of_spark_runs_in_a_local_session(tiny_backbone, tmp_path, monkeypatch):
    """Where pyspark and Java are; the page itself runs the same function with Dask."""
    pytest.importorskip("pyspark")
    import pandas as pd

    from skdice import DiceSequenceClassifier

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(DOCS.parent)]))
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(texts := ["win money", "lunch", "the bus", "hello"] * 4, ["spam", "a", "a", "a"] * 4)
    model.save_pretrained("spam-model")
    pd.DataFrame({"text": texts}).to_parquet("texts.parquet")
    page = (DOCS / "guide" / "machines.md").read_text()
    module, block = (
        re.search(rf"^```python\n([^`]*{word}[^`]*)^```$", page, re.M)[1]
        for word in ("def labels_of", "SparkSession.builder")
    )
    Path("predicting.py").write_text(module)
    exec(compile(block, "machines.md", "exec"), space := {})
    space["spark"].stop()
    found = pd.read_parquet("by-spark")
    assert dict(zip(found["text"], found["label"], strict=True)) == dict(
        zip(texts, model.predict(texts), strict=True)
    )
