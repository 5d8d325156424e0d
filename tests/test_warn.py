"""Warnings name the line of the caller, however deep in the package they arise."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdice import DiceClassifier, DiceQuestionAnswerer, DiceTokenClassifier, exceptions
from skdice.cli.app import app
from skdice.losses import DSCLoss
from skdice.model_selection import LossSearchCV

X = np.random.default_rng(0).normal(size=(20, 2))
Y = [0] * 10 + [1] * 10
RARE = [0] * 9 + [1] * 9 + [2, 2]  # too few for a stratified validation split
EARLY = DiceClassifier(max_epochs=1, early_stopping=True, random_state=0)


def by_nobody(model, rows, labels):
    raise ValueError("no score")


def literal(backbone):
    DSCLoss.literal()


def fit(backbone):
    EARLY.fit(X, RARE)


def fit_in_a_pipeline(backbone):
    make_pipeline("passthrough", EARLY).fit(X, RARE)


def fit_in_folds(backbone):
    cross_val_score(EARLY, X, RARE, cv=2)


def fit_in_a_grid(backbone):
    GridSearchCV(EARLY, {"lr": [0.1]}, cv=2).fit(X, RARE)


def search(backbone):
    space = {"loss": ["ce"]}
    model = DiceClassifier(max_epochs=1, random_state=0)
    LossSearchCV(model, space, n_trials=1, cv=2, scoring=by_nobody, error_score=0.0).fit(X, Y)


def tag(backbone):
    words = [["ann", "lives"], ["the", "bus"]]
    model = DiceTokenClassifier(backbone=backbone, max_epochs=1, random_state=0)
    model.fit(words, [["B-PER", "O"], ["O", "O"]], X_val=words, y_val=[["O", "O"], ["O", "O"]])


def answer(backbone):
    rows = [("who sings ?", "ann sings"), ("who sings now ?", "ann sings")]
    model = DiceQuestionAnswerer(backbone=backbone, max_epochs=1, random_state=0)
    model.fit(rows, [(0, "ann"), (0, "ann")])


def command(backbone):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.conll"
        file.write_text("ann\tB-PER\n\nthe\tO\n" * 3)
        dev = Path(folder) / "dev.conll"
        dev.write_text("the\tO\n\nbus\tO\n")
        options = f"--dev {dev} --max-epochs 1 --backbone {backbone} --out {folder}/model"
        assert not app(["train", str(file), *options.split()], standalone_mode=False)


@pytest.mark.parametrize(
    "call",
    [literal, fit, fit_in_a_pipeline, fit_in_folds, fit_in_a_grid, search, tag, answer, command],
)
def test_a_warning_names_the_line_of_the_caller(call, tiny_backbone):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(tiny_backbone)
    first = call.__code__.co_firstlineno
    ours = [w for w in caught if not issubclass(w.category, DeprecationWarning)]
    assert ours
    for warning in ours:
        assert warning.filename == __file__
        assert first < warning.lineno <= first + 7


CLASSES = {
    name
    for name, thing in vars(exceptions).items()
    if isinstance(thing, type) and thing.__module__ == exceptions.__name__
} - {"SkdiceWarning"}
ROOT = Path(__file__).parents[1]


def test_every_warning_has_its_section_on_the_page_and_one_base():
    page = (ROOT / "docs" / "warnings.md").read_text()
    sections = re.findall(
        r"^### (\w+)\n\n\*\*Meaning:\*\* .+?\n\n\*\*Remedy:\*\* \S", page, re.M | re.S
    )
    assert set(sections) == CLASSES
    assert len(sections) == len(CLASSES)
    for name in CLASSES:
        assert issubclass(getattr(exceptions, name), exceptions.SkdiceWarning)
    assert "(warnings.md)" in (ROOT / "docs" / "faq.md").read_text()


def test_every_warning_is_issued_with_a_class_of_its_own():
    issued = set()
    for path in sorted((ROOT / "skdice").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "warnings.warn":  # in one place, which finds the user's line
                assert path.name == "_warn.py", path
            elif called == "warn" and path.name != "_warn.py":
                assert len(node.args) == 2, f"{path}:{node.lineno} has no class"
                issued.add(ast.unparse(node.args[1]))
    assert issued == CLASSES
