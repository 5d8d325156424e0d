"""The table of tasks agrees with the estimators, transformers and peft."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import numpy as np
import pytest
import transformers
from transformers.pipelines import get_supported_tasks

from skdice import estimators
from skdice.engine.adapters import PEFT_TYPES
from skdice.tasks import TASKS
from skdice.tasks.cards import card_of
from skdice.tasks.files import files_of
from skdice.tasks.numbers import Numbers


def test_every_text_estimator_has_a_task_and_every_task_an_estimator():
    classes = [
        cls
        for cls in map(estimators.__dict__.get, estimators.__all__)
        if hasattr(cls, "from_transformers")
    ]
    expected = {name: task.estimator for name, task in TASKS.items()}
    assert {cls.task.name: cls.__name__ for cls in classes} == expected
    assert all(type(cls.task) is type(TASKS[cls.task.name]) for cls in classes)


@pytest.mark.parametrize("name", TASKS)
def test_what_other_libraries_call_it(name):
    task = TASKS[name]
    if name != "qa":  # transformers 5 has no pipeline for it
        assert card_of(task).hub_tag in get_supported_tasks()
    if task.head is not None:
        assert hasattr(transformers, f"AutoModelFor{task.head}")
        assert PEFT_TYPES[task.head] in pytest.importorskip("peft").TaskType.__members__


@pytest.mark.parametrize("name", TASKS)
def test_the_example_is_input_of_the_task(name):
    X = ast.literal_eval(card_of(TASKS[name]).example)
    assert len(TASKS[name].inputs(X)) == 1


def test_a_report_of_entities_leaves_regions_out_as_scores_do():
    true, found = [[(0, 3, "PER"), (5, 9, "O")]], [[(0, 3, "PER")]]
    how = {"mode": "strict", "as_json": True}
    report = files_of(TASKS["entities"]).report(None, None, true, found, **how)
    assert "O" not in report
    assert report["micro avg"]["f1"] == 1


def test_a_report_of_several_labels_has_a_row_for_a_label_that_training_did_not_have():
    model = SimpleNamespace(classes_=np.array(["a", "b"]), multilabel_=True)
    files, y = files_of(TASKS["classification"]), [["a"], ["b", "c"]]
    report = files.report(model, None, y, np.eye(2, dtype=int), mode="lenient", as_json=True)
    assert report["c"] == {"precision": 0, "recall": 0, "f1-score": 0, "support": 1}
    assert report["micro avg"]["recall"] == pytest.approx(2 / 3)
    assert files.unseen_labels(model, y) == ["c"]


def test_files_and_cards_know_every_task():
    for task in TASKS.values():
        assert files_of(task).formats
        assert card_of(task).hub_tag
    assert files_of(Numbers()).split_strata([0, 1, 1]).tolist() == [0, 1, 1]
