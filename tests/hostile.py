"""Hostile values for every parameter of every public callable, found by introspection.

`targets()` lists the public functions, constructors and methods; `attack()` makes a valid call of
one, replaces one argument after another by values that it was not made for, and counts:

refused   A ValueError or TypeError (OSError for a path, ImportError for a missing extra), whose
          message names the parameter; nothing has changed.
wrong     Any other exception, or one that does not name the parameter.
silent    A result though the value is plainly not legal for this parameter, or a result that holds
          NaN. What is legal is read from the annotation and the docstring: see `Domain`.
changed   An object, an argument, a file or the state of the process differs after a refusal.
slow      No answer within the time limit.
legal     A result for a value that the parameter's domain holds, or may hold.

An estimator keeps what its constructor gets and checks it in `fit`, as scikit-learn asks. So its
constructor is called together with `fit` (`fit_resample` for a sampler).

Arguments of the valid call come from `MAKERS`, by a parameter's name and by the kind of data (tags,
labels, answers, ...), which is tried out. A public name for which no valid call can be made is an
error, until there is a maker for its parameter.
"""

from __future__ import annotations

import copy
import decimal
import functools
import importlib
import inspect
import io
import json
import linecache
import os
import random
import re
import signal
import sys
import traceback
import typing
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from torch import nn

import skdice
from skdice.model_selection import LossSearchCV

ROOT = Path(__file__).parents[1]

# ---- values


class _Bare:
    """An instance of nothing that anybody knows."""


# Made anew for each call, since some can be used up or changed.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "2**70": lambda: 2**70,
    "10**400": lambda: 10**400,
    "-2**63": lambda: -(2**63),
    "0.5": lambda: 0.5,
    "1e308": lambda: 1e308,
    "inf": lambda: float("inf"),
    "nan": lambda: float("nan"),
    "complex": lambda: 1 + 2j,
    "Decimal": lambda: decimal.Decimal("NaN"),
    "int8": lambda: np.int8(-3),
    "uint64": lambda: np.uint64(2**64 - 1),
    "float16": lambda: np.float16("nan"),
    "float64": lambda: np.float64("-inf"),
    "bool_": lambda: np.bool_(False),
    "str_": lambda: np.str_("unknown"),
    "datetime": lambda: datetime(2020, 1, 1),
    "datetime64": lambda: np.datetime64("NaT"),
    "empty str": lambda: "",
    "unknown": lambda: "unknown",
    "null": lambda: "\x00",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"\xff",
    "absent path": lambda: Path("/proc/nowhere/at/all"),
    "object": lambda: object(),
    "instance": lambda: _Bare(),
    "class": lambda: _Bare,
    "function": lambda: len,
    "[]": lambda: [],
    "()": lambda: (),
    "{}": lambda: {},
    "set": lambda: {"a", 1},
    "dict": lambda: {"unknown": object()},
    "[None]": lambda: [None],
    "[nan]": lambda: [float("nan")] * 6,
    "[inf]": lambda: [float("inf")],
    "[-1]": lambda: [-1],
    "['unknown']": lambda: ["unknown"],
    "[object]": lambda: [object()],
    "ragged": lambda: [[1], [2, [3]], []],
    "ragged words": lambda: [["a"], "b", None, ["c", 4]],
    "nested": lambda: functools.reduce(lambda inner, _: [inner], range(200), "deep"),
    "generator": lambda: (i for i in range(3)),
    "0-d array": lambda: np.array(3),
    "empty array": lambda: np.zeros((0, 3)),
    "7-d array": lambda: np.zeros((1,) * 7),
    "nan array": lambda: np.full((6, 2), np.nan),
    "object array": lambda: np.array([None, "a", 3], dtype=object),
    "structured": lambda: np.zeros(3, dtype=[("a", int), ("b", "U3")]),
    "frame": lambda: pd.DataFrame({"a": [1, None], "b": ["x", pd.NA]}),
    "series": lambda: pd.Series(["a", pd.NA], dtype="string"),
    "tensor": lambda: torch.zeros(2, 2, 2),
    "nan tensor": lambda: torch.full((6,), float("nan")),
    "module": lambda: nn.Linear(2, 2),
}
HUGE = ("2**70", "10**400", "uint64")

# ---- what is legal


SIGNED = {
    "token_column", "tag_column", "layer", "ignore_index", "null_threshold", "n_jobs",
    "low", "high", "eta", "label_column",
}  # fmt: skip
# Numbers for which infinity has a meaning.
MAY_BE_INFINITE = {"timeout", "max_grad_norm", "error_score", "null_threshold", "zero_division"}
# What a user may set to NaN; a result is then NaN as well. Whether tensors of a network hold NaN
# is not looked at: reading them from a GPU would make every step wait, and torch gives NaN, too.
MAY_BE_NAN = {"error_score", "zero_division", "logits", "outputs", "first", "second"}
# A legal number of these makes a call that takes for ever.
ENDLESS = {"max_epochs", "n_trials", "trials_at_once", "n_finalists", "n_bootstraps", "n_points"}
PATHS = {
    "path",
    "folder",
    "cache",
    "memory",
    "checkpoint_dir",
    "resume_from",
    "backbone",
    "storage",
}


@dataclass
class Domain:
    """What a parameter may be, from its annotation, its default and its line in the docstring."""

    name: str
    annotation: str
    default: Any
    text: str

    @property
    def types(self) -> set[str]:
        parts = re.split(r"\s*\|\s*(?![^\[]*\])", self.annotation)
        return {part.split("[")[0].strip() for part in parts}

    @property
    def choices(self) -> set[str] | None:
        """Strings that the docstring lists, if these are all that it takes."""
        listed = re.match(r"(\{[^}]*\})(?: or None)?(?:,|$)", self.text)
        return set(re.findall(r'"([^"]*)"', listed[1])) if listed else None

    @property
    def is_called(self) -> bool:
        """Whether it may be a function, whose own errors are the caller's."""
        return "Callable" in self.types or bool(
            re.search("callable|scoring|strategy", self.name + self.text)
        )

    def forbids(self, value: Any) -> bool:
        """Whether a value is plainly not legal. Unsure means no."""
        types, name = self.types, self.name
        if self.text.startswith("ignored"):  # scikit-learn asks for `y` where nothing reads it
            return False
        if value is None:
            return not (types & {"None", "Any", "PerClass", "Weights"} or self.default is None) or (
                self.default is inspect.Parameter.empty and name in ROWS
            )
        if name in ROWS:
            return _no_rows(value)
        if name in PATHS or "Path" in types:
            return not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value)
        simple = types - {"None"}
        if not simple <= {"int", "float", "bool", "str", "Number"}:
            return False
        return not any(getattr(self, f"_{kind.lower()}")(value) for kind in simple)

    def _bool(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_)) or (
            isinstance(value, (int, np.integer)) and value in (0, 1)
        )

    def _int(self, value: Any) -> bool:
        whole = isinstance(value, (int, np.integer, bool, np.bool_))
        return whole and (value >= 0 or self.name in SIGNED)

    def _float(self, value: Any) -> bool:
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            return False
        if value != value:
            return self.name in MAY_BE_NAN
        if abs(value) == float("inf") and self.name not in MAY_BE_INFINITE:
            return False
        return bool(value >= 0) or self.name in SIGNED | MAY_BE_INFINITE

    def _number(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) or self._float(value)

    def _str(self, value: Any) -> bool:
        return isinstance(value, str) and (self.choices is None or value in self.choices)


ROWS = {"X", "y", "y_true", "y_pred", "tags", "X_test", "y_test", "X_val", "y_val", "y_proba"}


def _no_rows(value: Any) -> bool:
    """Whether a value holds no rows at all: no container, or one without an order."""
    if isinstance(value, (str, bytes, dict, set, type, nn.Module)):
        return True
    return not hasattr(value, "__iter__") or np.ndim(getattr(value, "shape", (1,))) == 0


# ---- arguments of a valid call


WORDS = [
    ["anna", "met", "bob", "in", "rome"],
    ["the", "bank", "of", "oslo", "is", "old"],
    ["rain", "today"],
    ["dan", "lives", "in", "paris"],
    ["carla", "saw", "the", "school", "of", "rome"],
    ["bob", "works", "at", "acme"],
]
TAGS = [
    ["B-PER", "O", "B-PER", "O", "B-LOC"],
    ["O", "B-LOC", "I-LOC", "I-LOC", "O", "O"],
    ["O", "O"],
    ["B-PER", "O", "O", "B-LOC"],
    ["B-PER", "O", "O", "O", "O", "B-LOC"],
    ["B-PER", "O", "O", "B-LOC"],
]
SPANS = [
    [("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)],
    [("LOC", 1, 4), ("LOC", 3, 4)],
    [],
    [("PER", 0, 1), ("LOC", 3, 4)],
    [("PER", 0, 1), ("LOC", 5, 6)],
    [("PER", 0, 1)],
]
# The spans by their characters.
ENTITIES = [
    [(len(" ".join(["", *row[:a]])), len(" ".join(row[:b])), kind) for kind, a, b in spans]
    for row, spans in zip(WORDS, SPANS, strict=True)
]
ANSWERS = [[(0, "anna")], [(4, "bank")], [], [(0, "dan")], [(0, "carla")], [(0, "bob")]]
LABELS = ["spam", "ham", "ham", "spam", "ham", "ham"]
QUICK = {
    "max_epochs": 1, "batch_size": 4, "random_state": 0, "n_trials": 1, "cv": 2,
    "n_bootstraps": 3, "n_points": 3, "device": "cpu",
    "TverskySweepDisplay.from_estimator.alphas": [0.5],
    "compare_losses.losses": ["ce"], "from_losses.losses": {"ce": "ce"},
    "weighted_cross_entropy.class_counts": [4, 2], "LossSearchCV.strategy": "full",
}  # fmt: skip
TRAINING = ("fit", "partial_fit", "fit_resample", "tune_threshold", "take_runs", "prepare")
PARTNERS = {"X_val": "y_val", "y_val": "X_val"}


class Makers:
    """Valid arguments by name, for one kind of data; models are fitted once."""

    KINDS = ("numbers", "texts", "tags", "spans", "answers", "files", "entities")

    def __init__(self, folder: Path, backbone: str) -> None:
        self.folder, self.backbone = folder, backbone
        (folder / "written").mkdir()

    def knows(self, key: str) -> bool:
        """Whether there is a maker for a parameter, or for ``owner.parameter``."""
        return key in QUICK or hasattr(self, "a_" + key.replace(".", "_"))

    def find(self, key: str, kind: str) -> Any:
        """A fresh value, or a shared model."""
        if key in QUICK:
            return copy.deepcopy(QUICK[key])
        return getattr(self, "a_" + key.replace(".", "_"))(kind)

    # ---- rows

    def a_X(self, kind: str) -> Any:  # noqa: N802
        texts = [" ".join(row) for row in WORDS]
        rows = {
            "numbers": np.array([[i % 2, i / 6, 1.0] for i in range(6)]),
            "texts": texts,
            "entities": texts,
            "answers": [("who is it", text) for text in texts],
        }
        return copy.deepcopy(rows.get(kind, WORDS))

    def a_y(self, kind: str) -> Any:
        rows = {
            "tags": TAGS, "files": TAGS, "spans": SPANS, "answers": ANSWERS, "entities": ENTITIES,
        }  # fmt: skip
        return copy.deepcopy(rows.get(kind, LABELS))

    a_X_test = a_X_val = a_pool = a_X  # noqa: N815
    a_y_test = a_y_val = a_y_true = a_tags = a_y

    def a_y_pred(self, kind: str) -> Any:
        if kind == "answers":
            return [row[0][1] if row else "" for row in ANSWERS]
        return self.a_y(kind)

    a_predictions = a_y_pred

    def a_proba(self, kind: str) -> Any:
        return [np.full((len(row), 5), 0.2) for row in WORDS]

    def a_span_probabilities_classes(self, kind: str) -> Any:
        return ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]

    def a_spans(self, kind: str) -> Any:
        return copy.deepcopy(SPANS)

    def a_ids(self, kind: str) -> Any:
        return [f"q{i}" for i in range(len(ANSWERS))]

    def a_ThresholdDisplay_from_predictions_y_true(self, kind: str) -> Any:  # noqa: N802
        return [0, 1, 0, 1, 1, 0]

    a_expected_calibration_error_y_true = a_ThresholdDisplay_from_predictions_y_true
    a_right = a_ThresholdDisplay_from_predictions_y_true

    def a_scores(self, kind: str) -> Any:
        return [0.2, 0.7, 0.4, 0.9, 0.3, 0.1]

    def a_per_thousand(self, kind: str) -> Any:
        return 50

    def a_matrix(self, kind: str) -> Any:
        return [[0, 1], [20, 0]]

    def a_RecallAtPrecision_precision(self, kind: str) -> Any:  # noqa: N802
        return 0.9

    a_PrecisionAtRecall_recall = a_RecallAtPrecision_precision  # noqa: N815

    def a_y_proba(self, kind: str) -> Any:
        return [0.2, 0.7, 0.4, 0.9, 0.3, 0.1]

    def a_dataset(self, kind: str) -> Any:
        import datasets

        return datasets.Dataset.from_dict({"text": self.a_X("texts"), "label": LABELS})

    def a_text_columns(self, kind: str) -> Any:
        return "text"

    def a_label_column(self, kind: str) -> Any:
        return "label"

    # ---- models

    @functools.cache  # noqa: B019 - one instance for each session
    def model(self, kind: str, fitted: bool = True) -> Any:
        cls = {
            "numbers": skdice.DiceClassifier,
            "texts": skdice.DiceSequenceClassifier,
            "answers": skdice.DiceQuestionAnswerer,
            "spans": skdice.DiceMRCTagger,
            "entities": skdice.DiceEntityRecognizer,
        }.get(kind, skdice.DiceTokenClassifier)
        model = cls(max_epochs=1, batch_size=4, random_state=0, device="cpu")
        if hasattr(model, "backbone"):
            model.set_params(backbone=self.backbone)
        return model.fit(self.a_X(kind), self.a_y(kind)) if fitted else model

    def a_estimator(self, kind: str) -> Any:
        return self.model(kind)

    @functools.cache  # noqa: B019
    def a_pipeline(self, kind: str) -> Any:
        from transformers import pipeline

        folder = str(self.a_from_pretrained_folder("entities"))
        return pipeline("ner", model=folder, device="cpu", aggregation_strategy="first")

    def a_BiasTunedClassifier_estimator(self, kind: str) -> Any:  # noqa: N802
        return self.model(kind, fitted=False)

    a_BiasTunedTagger_estimator = a_BiasTunedClassifier_estimator  # noqa: N815
    a_LossSearchCV_estimator = a_BiasTunedClassifier_estimator  # noqa: N815

    def a_backbone(self, kind: str) -> Any:
        return self.backbone

    @functools.cache  # noqa: B019
    def a_search(self, kind: str) -> Any:
        scores = {"precision": "precision_macro", "recall": "recall_macro", "f1": "f1_macro"}
        model = skdice.DiceClassifier(loss="tversky", max_epochs=1, random_state=0)
        search = LossSearchCV(model, n_trials=2, cv=2, scoring=scores, refit="f1", random_state=0)
        return search.fit(self.a_X("numbers"), self.a_y("numbers"))

    @functools.cache  # noqa: B019
    def a_comparison(self, kind: str) -> Any:
        from skdice.model_selection import compare_losses

        X, y = self.a_X("numbers"), self.a_y("numbers")
        model = self.model("numbers", fitted=False)
        return compare_losses(model, X, y, X_test=X, y_test=y, losses=["ce"], seeds=2)

    def a_Comparison_behind_model(self, kind: str) -> Any:  # noqa: N802
        return self.a_comparison(kind).rows[0]

    def a_imbalance(self, kind: str) -> Any:
        from skdice.inspection import imbalance

        return imbalance(LABELS)

    def a_rows(self, kind: str) -> Any:
        return copy.deepcopy(self.a_comparison(kind).rows)

    # ---- files

    def a_path(self, kind: str) -> Any:
        from skdice.datasets import write_conll

        path = self.folder / {"texts": "t.csv", "answers": "s.json", "spans": "m.json"}.get(
            kind, "c.conllu" if kind == "numbers" else "c.conll"
        )
        if kind == "texts":
            rows = zip(self.a_X(kind), LABELS, strict=True)
            path.write_text("text,label\n" + "".join(f"{x},{y}\n" for x, y in rows))
        elif kind == "answers":
            paragraphs = [
                {
                    "context": context,
                    "qas": [
                        {
                            "id": f"q{i}",
                            "question": question,
                            "answers": [{"text": t, "answer_start": s} for s, t in ANSWERS[i]],
                            "is_impossible": not ANSWERS[i],
                        }
                    ],
                }
                for i, (question, context) in enumerate(self.a_X(kind))
            ]
            path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
        elif kind == "spans":
            record = {
                "context": "anna met bob", "query": "Who?", "entity_label": "PER",
                "start_position": [0, 2], "end_position": [0, 2], "qas_id": "0.0",
            }  # fmt: skip
            path.write_text(json.dumps([record]))
        elif kind == "numbers":
            columns = "1\tanna\tanna\tPROPN\tNNP\t_\t0\troot\t_\t_\n"
            path.write_text(columns + "\n" + columns)
        else:
            write_conll(path, WORDS, TAGS)
        return path

    def a_write_conll_path(self, kind: str) -> Any:
        return self.folder / "written" / "w.conll"

    def a_write_annotations_path(self, kind: str) -> Any:
        return self.folder / "written" / "a.jsonl"

    def a_texts(self, kind: str) -> Any:
        return ["Ann sings.", "No."]

    def a_entities(self, kind: str) -> Any:
        return [[(0, 3, "PER")], []]

    def a_show_entities_X(self, kind: str) -> Any:  # noqa: N802
        return self.a_texts(kind)

    def a_format(self, kind: str) -> Any:
        return "jsonl"

    def a_write_squad_predictions_path(self, kind: str) -> Any:
        return self.folder / "written" / "p.json"

    a_to_json_path = a_take_runs_path = a_write_squad_predictions_path

    @functools.cache  # noqa: B019
    def a_with_onnx_path(self, kind: str) -> Any:
        from skdice.export import export_onnx

        return export_onnx(self.model(kind), self.folder / f"onnx-{kind}") / "model.onnx"

    def a_folder(self, kind: str) -> Any:
        return self.folder / "written"

    @functools.cache  # noqa: B019
    def a_from_pretrained_folder(self, kind: str) -> Any:
        model = self.model(kind)
        if kind == "texts":  # the pooling that transformers has, too
            model = clone(model).set_params(pooling="native").fit(self.a_X(kind), self.a_y(kind))
        return model.save_pretrained(self.folder / f"saved-{kind}")

    a_from_transformers_folder = a_from_pretrained_folder

    def a_export_onnx_folder(self, kind: str) -> Any:
        return self.folder / "exported"

    def a_repo_id(self, kind: str) -> Any:
        return "ann/notes"

    # ---- single values

    def a_text(self, kind: str) -> Any:
        return "The cat"

    def a_name(self, kind: str) -> Any:
        return "alpha"

    def a_loss(self, kind: str) -> Any:
        return "dice"

    def a_SpanEndsLoss_loss(self, kind: str) -> Any:  # noqa: N802
        from skdice.losses import DiceLoss

        return DiceLoss().prepare([4, 2])

    def a_HeadsLoss_losses(self, kind: str) -> Any:  # noqa: N802
        return [self.a_SpanEndsLoss_loss(kind)]

    def a_weights(self, kind: str) -> Any:
        return [1.0]

    def a_low(self, kind: str) -> Any:
        return 0.1

    def a_high(self, kind: str) -> Any:
        return 0.9

    def a_params(self, kind: str) -> Any:
        return {}

    def a_OneMinus___call___params(self, kind: str) -> Any:  # noqa: N802
        return {"alpha": 0.3}

    def a_state(self, kind: str) -> Any:
        return {"class_counts_": torch.tensor([4.0, 2.0]), "n_samples_": torch.tensor(6.0)}

    def a_CompoundLoss_functional_loss_state(self, kind: str) -> Any:  # noqa: N802
        state = self.a_state(kind)
        of_parts = {f"{part}.{key}": state[key] for part in ("first", "second") for key in state}
        return {**state, **of_parts}

    def a_logits(self, kind: str) -> Any:
        shape = {"numbers": (6, 2), "texts": (6,), "tags": (2, 3, 4), "spans": (6, 2)}
        return torch.linspace(-1, 1, int(np.prod(shape.get(kind, (6, 2))))).reshape(
            shape.get(kind, (6, 2))
        )

    def a_target(self, kind: str) -> Any:
        if kind == "tags":
            return torch.tensor([[0, 1, 2], [3, 0, -100]])
        if kind == "spans":
            return torch.tensor([[1, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]])
        if kind == "answers":
            return torch.tensor([[1, 0], [0, 0]] * 3)
        return torch.tensor([0, 1, 0, 0, 1, 0])

    a_labels = a_target

    def a_outputs(self, kind: str) -> Any:
        return {"logits": self.a_logits(kind)}

    def a_class_counts(self, kind: str) -> Any:
        return [4, 2]

    def a_other(self, kind: str) -> Any:
        from skdice.losses import DiceLoss

        return DiceLoss()

    def a_first(self, kind: str) -> Any:
        return torch.tensor(1.0)

    a_second = a_first

    def a_classes(self, kind: str) -> Any:
        return np.array(["ham", "spam"])

    def a_counts(self, kind: str) -> Any:
        return np.array([4, 2])

    def a_ClassFrequencyDisplay_counts(self, kind: str) -> Any:  # noqa: N802
        return [[3, 1], [4, 2], [4, 2]]

    def a_SpanConfusionDisplay_counts(self, kind: str) -> Any:  # noqa: N802
        return [[3, 1, 0], [4, 2, 1], [4, 2, 0]]

    def a_Imbalance_counts(self, kind: str) -> Any:  # noqa: N802
        return {"ham": 3, "spam": 3}

    def a_types(self, kind: str) -> Any:
        return ["LOC", "PER"]

    def a_bias(self, kind: str) -> Any:
        return [-1.0, 0.0, 1.0]

    a_f1 = a_threshold = a_alphas = a_train_loss = lambda self, kind: [0.2, 0.5, 0.7]
    a_precision = a_recall = a_p = a_score = a_f1

    def a_values(self, kind: str) -> Any:
        return {name: np.full((3, 2), 0.5) for name in ("precision", "recall", "f1")}

    def a_gradients(self, kind: str) -> Any:
        return {"ce": ([-3.0, -2.0, -1.0], [1.0, 2.0, 3.0])}

    def a_unit(self, kind: str) -> Any:
        return "tokens"

    def a_title(self, kind: str) -> Any:
        return "title"

    def a_measure(self, kind: str) -> Any:
        return "F1"

    def a_task(self, kind: str) -> Any:
        return "classification"

    def a_settings(self, kind: str) -> Any:
        return {"identity": "a"}

    def a_environment(self, kind: str) -> Any:
        return {"skdice": "1"}

    def a_seeds(self, kind: str) -> Any:
        return [0, 1]

    def a_compare_losses_seeds(self, kind: str) -> Any:
        return 1

    def a_background(self, kind: str) -> Any:
        return "ham"

    def a_n_negative(self, kind: str) -> Any:
        return 3

    a_n_positive = a_n_negative

    def a_sampler(self, kind: str) -> Any:
        from skdice.resampling import TextOverSampler

        return TextOverSampler(random_state=0)

    def a_steps(self, kind: str) -> Any:
        return [("model", self.model(kind, fitted=False))]

    def a_make_pipeline_steps(self, kind: str) -> Any:
        return self.model(kind, fitted=False)


# ---- the public surface


@dataclass
class Target:
    """A public function, constructor or method."""

    name: str
    function: Callable[..., Any]
    owner: type | None = None  # of a constructor or a method
    attribute: str = ""  # of a method

    @property
    def is_method(self) -> bool:
        return bool(self.attribute)

    @property
    def short(self) -> str:
        return self.name.removeprefix("skdice.")

    @functools.cached_property
    def domains(self) -> list[Domain]:
        """Its parameters; those of ``**options: Unpack[...]`` one by one."""
        found = []
        for p in inspect.signature(self.function).parameters.values():
            if p.name in ("self", "cls"):
                continue
            if p.kind is p.VAR_POSITIONAL and p.annotation is p.empty:
                continue
            if p.kind is not p.VAR_KEYWORD:
                found.append((p.name, str(p.annotation), p.default))
                continue
            unpacked = re.match(r"(?:typing\.)?Unpack\[(\w+)\]", str(p.annotation))
            if unpacked:
                options = vars(sys.modules[self.function.__module__]).get(unpacked[1])
                hints = typing.get_type_hints(options) if options else {}
                lines = {name: str(kind) for name, kind in hints.items()}
                found += [(name, line, None) for name, line in lines.items() if name != "problem"]
        return [Domain(*entry, self._docs.get(entry[0], "")) for entry in found]

    @property
    def _docs(self) -> dict[str, str]:
        docs: dict[str, str] = {}
        for thing in (self.owner, self.function):
            for names, text in re.findall(
                r"^\*{0,2}(\w[\w, ]*) : (.+)$", inspect.getdoc(thing) or "", re.M
            ):
                docs |= dict.fromkeys(names.split(", "), text)
        return docs


def packages() -> list[str]:
    """The modules that the API reference documents; tests/test_docs.py holds it to be whole."""
    return re.findall(r"currentmodule:: (\S+)", (ROOT / "docs" / "api.md").read_text())


# Names without a valid call, and why.
NO_CALL = {
    "skdice.model_selection.adapt_prior": "needs one of two options; refusals are in test_prior",
    "skdice.model_selection.OutOfFold": "a named tuple, which checks nothing",
    "skdice.text.DecisiveWindow": "a named tuple, which checks nothing",
    "skdice.text.Entity": "a named tuple, which checks nothing",
    "skdice.losses.Loss": "the base has no kernel; each loss is attacked by itself",
    "skdice.DiceMRCTagger.from_transformers": "refuses every folder, since no model has its heads",
    "skdice.model_selection.LossSearchCV.predict_log_proba": "no estimator of skdice has it",
    "skdice.model_selection.LossSearchCV.transform": "no estimator of skdice with a loss has it",
}


def targets() -> list[Target]:
    """Every public callable that takes arguments, once."""
    found: dict[Any, Target] = {}
    for package in packages():
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", None) or vars(module):
            thing = getattr(module, name)
            if name[0] == "_" or not _is_ours(thing) or not callable(thing):
                continue
            if inspect.isclass(thing) and issubclass(thing, Warning):  # checks nothing
                continue
            entries = [
                Target(f"{package}.{name}", thing, thing if inspect.isclass(thing) else None)
            ]
            if inspect.isclass(thing):
                entries += _methods(thing, f"{package}.{name}")
            for entry in entries:
                if entry.domains and not any(
                    f"{entry.name}.".startswith(f"{name}.") for name in NO_CALL
                ):
                    found.setdefault(entry.name if entry.is_method else entry.function, entry)
    return list({target.name: target for target in found.values()}.values())


def _methods(cls: type, qualified: str) -> Iterator[Target]:
    for name in dir(cls):
        method = getattr(cls, name, None)
        if not inspect.isroutine(method) or not _is_ours(method):
            continue
        if isinstance(inspect.getattr_static(cls, name), staticmethod):  # a function with a name
            continue
        hidden = name.startswith("_") and name != "__call__"
        # A loss has methods for skdice's own engine, which have no section of parameters.
        documented = "Parameters\n" in (inspect.getdoc(method) or "") or not issubclass(
            cls, nn.Module
        )
        if not hidden and documented and name not in ("set_params", "get_params"):
            yield Target(f"{qualified}.{name}", method, cls, name)


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("skdice")


# ---- what may not change


def mark(thing: Any, seen: dict[int, int] | None = None, depth: int = 0) -> Any:
    """A value that is equal as long as nothing in `thing` has changed."""
    seen = {} if seen is None else seen
    if thing is None or isinstance(thing, (bool, int, str, bytes, complex, Path, type)):
        return thing
    if isinstance(thing, float):
        return repr(thing)
    if id(thing) in seen or depth > 60:
        return ("again", seen.get(id(thing)))
    seen[id(thing)] = len(seen)

    def inner(value: Any) -> Any:
        return mark(value, seen, depth + 1)

    if isinstance(thing, torch.Tensor):
        data = thing.detach().cpu()
        return (str(data.dtype), tuple(data.shape), data.contiguous().numpy().tobytes())
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return (str(thing.dtype), thing.shape, thing.tobytes())
    if isinstance(thing, dict):
        return ("dict", [(inner(k), inner(v)) for k, v in thing.items()])
    if isinstance(thing, (list, tuple, np.ndarray)):
        return (type(thing).__name__, [inner(value) for value in thing])
    if isinstance(thing, (set, frozenset)):
        return ("set", sorted(map(repr, thing)))
    if isinstance(thing, (pd.DataFrame, pd.Series)):
        return repr(thing.to_dict())
    held = getattr(thing, "__dict__", None)
    if not held or inspect.isroutine(thing) or inspect.ismodule(thing):
        return type(thing).__name__
    return (type(thing).__name__, inner(held))


def process_state() -> dict[str, Any]:
    """What belongs to the user's process, and not to a call."""
    import matplotlib
    import matplotlib.pyplot as plt
    from transformers.utils import logging

    return {
        "random": hash(random.getstate()),
        "numpy": mark(np.random.get_state()),
        "torch": mark(torch.get_rng_state()),
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "warnings": mark(warnings.filters),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "rcParams": hash(repr(dict(matplotlib.rcParams))),
        "figures": plt.get_fignums(),
        "verbosity": (logging.get_verbosity(), logging.is_progress_bar_enabled()),
        "numpy errors": np.geterr(),
    }


def files(folder: Path) -> list[Any]:
    return sorted((str(p), p.stat().st_size) for p in folder.rglob("*"))


def holds_nan(result: Any, depth: int = 0) -> bool:
    """Whether numbers in a result are NaN."""
    if isinstance(result, (float, np.floating)):
        return bool(result != result)
    if isinstance(result, torch.Tensor):
        return bool(result.is_floating_point() and torch.isnan(result).any())
    if isinstance(result, np.ndarray) and result.dtype.kind == "f":
        return bool(np.isnan(result).any())
    if depth < 3 and isinstance(result, dict):
        return any(holds_nan(value, depth + 1) for value in result.values())
    if depth < 3 and isinstance(result, (list, tuple)):
        return any(holds_nan(value, depth + 1) for value in result)
    return False


# ---- the attack


class TooSlow(BaseException):
    """A call took longer than its limit."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Result:
    """One hostile call."""

    target: str
    parameter: str
    value: str
    outcome: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:8} {self.target}({self.parameter}={self.value}): {self.detail}"


@dataclass
class Harness:
    """Makes valid calls, and hostile ones out of them."""

    folder: Path
    backbone: str
    seconds: float = 10.0
    makers: Makers = field(init=False)
    kinds: dict[str, str] = field(default_factory=dict)
    instances: dict[Any, Any] = field(default_factory=dict)
    trained: Any = None

    def __post_init__(self) -> None:
        self.makers = Makers(self.folder, self.backbone)

    # ---- valid calls

    def arguments(self, target: Target, kind: str) -> dict[str, Any]:
        """Required arguments, and optional ones that keep a call short."""
        short = target.name.split(".")[-2:] if target.is_method else target.name.split(".")[-1:]
        owners = [".".join(short), *reversed(short)]
        base = {}
        for domain in target.domains:
            name = domain.name
            special = [owner for owner in owners if self.makers.knows(f"{owner}.{name}")]
            required = domain.default is inspect.Parameter.empty
            if special:
                base[name] = self.makers.find(f"{special[0]}.{name}", kind)
            elif name in QUICK or name in ("y", "backbone") or required:
                if not self.makers.knows(name):
                    raise LookupError(
                        f"no maker for the parameter {name!r} of {target.name}: add a_{name} to "
                        "tests/hostile.py"
                    )
                base[name] = self.makers.find(name, kind)
        return base

    def call(self, target: Target, arguments: dict[str, Any], kind: str) -> Any:
        if target.is_method and not inspect.ismethod(target.function):
            instance = self.instance(target, kind)
            return self._given(getattr(instance, target.attribute), arguments)
        made = self._given(target.function, arguments)
        if not target.is_method and isinstance(made, (BaseEstimator,)) and hasattr(made, "fit"):
            X, y = self.makers.a_X(kind), self.makers.a_y(kind)
            if hasattr(made, "fit_resample"):
                return made.fit_resample(X, y)
            made.fit(X, y)
        return made

    @staticmethod
    def _given(function: Any, arguments: dict[str, Any]) -> Any:
        positional = [
            arguments.pop(p.name)
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) and p.name in arguments
        ]
        result = function(*positional, **arguments)
        # Nothing of a lazy result has been computed or refused yet.
        return list(result) if inspect.isgenerator(result) else result

    def instance(self, target: Target, kind: str) -> Any:
        """An object to call a method of, fitted if it can be; a copy where it will be trained."""
        cls, key = target.owner, (target.owner, kind)
        if key not in self.instances:
            made = self._given(cls, self.arguments(Target(f".{cls.__name__}", cls, cls), kind))
            if hasattr(made, "fit"):
                made.fit(self.makers.a_X(kind), self.makers.a_y(kind))
            elif hasattr(made, "prepare"):
                made.prepare(self.makers.a_class_counts(kind))
            self.instances[key] = made
        if target.attribute in TRAINING and self.trained is None:
            self.trained = copy.deepcopy(self.instances[key])
        return self.instances[key] if self.trained is None else self.trained

    def kind_of(self, target: Target) -> str:
        """The kind of data with which a valid call succeeds; the error of each if there is none."""
        if target.name in self.kinds:
            return self.kinds[target.name]
        errors = []
        for kind in Makers.KINDS:
            try:
                with quiet(), limit(60):
                    self.trained = None
                    self.call(target, self.arguments(target, kind), kind)
            except (Exception, TooSlow) as error:
                errors.append(f"  {kind}: {type(error).__name__}: {str(error)[:200]}")
                continue
            self.kinds[target.name] = kind
            return kind
        raise LookupError(f"no valid call of {target.name}:\n" + "\n".join(dict.fromkeys(errors)))

    # ---- hostile calls

    def attack(
        self, target: Target, values: Callable[[str], list[str]] = lambda parameter: list(VALUES)
    ) -> list[Result]:
        """Every parameter with each of `values` (which may depend on its name)."""
        kind = self.kind_of(target)
        results = []
        for domain in target.domains:
            for name in values(domain.name):
                if name in HUGE and domain.name in ENDLESS:
                    continue
                if domain.name == "n_jobs" and name in ("-1", "int8"):
                    continue  # legal, and on a busy machine processes take long to start
                results.append(self.throw(target, domain, name, kind))
        return results

    def throw(self, target: Target, domain: Domain, name: str, kind: str) -> Result:
        arguments, value = self.arguments(target, kind), VALUES[name]()
        partner = PARTNERS.get(domain.name)
        if partner is not None and partner in {d.name for d in target.domains}:
            arguments[partner] = self.makers.find(partner, kind)
        arguments[domain.name] = value
        result = functools.partial(Result, target.short, domain.name, name)
        self.trained, instance = None, None
        if target.is_method and not inspect.ismethod(target.function):
            instance = self.instance(target, kind)
        watched = {k: v for k, v in arguments.items() if not inspect.isgenerator(v)}
        before = mark(instance), mark(watched), process_state(), files(self.folder)
        try:
            with quiet(), limit(self.seconds):
                returned = self.call(target, dict(arguments), kind)
        except TooSlow:
            self.instances.pop((target.owner, kind), None)
            return result("slow", f"no answer in {self.seconds} s")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            after = mark(instance), mark(watched), process_state(), files(self.folder)
            message = f"{type(error).__name__}: {_plain(str(error))[:160]}"
            for what, one, other in zip(
                ("the object", "an argument", "the process", "a file"), before, after, strict=True
            ):
                if one != other:
                    if isinstance(one, dict):
                        what += str([key for key in one if one[key] != other[key]])
                    self.instances.pop((target.owner, kind), None)
                    _restore(before[2])
                    return result("changed", f"{what} changed by the refusal {message}")
            allowed: tuple[type, ...] = (ValueError, TypeError, ImportError)
            if domain.name in PATHS | {"repo_id"} or "Path" in domain.types:  # or the hub's answer
                allowed += (OSError,)
            if not isinstance(error, allowed) or isinstance(error, UnicodeError):
                return result("wrong", message)
            if isinstance(error, OSError):  # it says which file
                return result("refused", message)
            if callable(value) and domain.is_called and isinstance(error, (TypeError, ValueError)):
                return result("refused", message)  # a function of other arguments
            if not (
                domain.name.removesuffix("es") in str(error)
                # Rows that do not fit each other are refused by the name of either.
                or (domain.name in ROWS and re.search(r"\b[Xy]\b", str(error)))
                or _quotes(domain, value, str(error))
                or _is_sklearns(error)
            ):
                return result("wrong", f"does not name {domain.name}: {message}")
            return result("refused", message)
        if domain.forbids(value):
            return result("silent", f"gave {_shown(returned)}")
        # A sampler of numbers hands rows on as they are.
        passed_on = target.attribute == "fit_resample"
        if holds_nan(returned) and domain.name not in MAY_BE_NAN and not passed_on:
            return result("silent", f"gave NaN: {_shown(returned)}")
        return result("legal")


def _is_sklearns(error: BaseException) -> bool:
    """Whether scikit-learn or imbalanced-learn refused the value, in words that its users know."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    lines = [linecache.getline(frame.filename, (frame.lineno or 0) - i) for i in range(8)]
    theirs = any(f"/{name}/" in frame.filename for name in ("sklearn", "imblearn"))
    return theirs and any(line.lstrip().startswith("raise ") for line in lines)


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\n", " ")


def _shown(thing: Any) -> str:
    try:
        return _plain(repr(thing)[:100])
    except Exception as error:  # the repr of what should have been refused
        return f"{type(thing).__name__}, whose repr raises {type(error).__name__}"


def _quotes(domain: Domain, value: Any, message: str) -> bool:
    """Whether a refused path stands in the message, which says as much as its parameter."""
    return (
        (domain.name in PATHS or "Path" in domain.types)
        and bool(str(value))
        and (str(value) in message or repr(value) in message or repr(str(value)) in message)
    )


def _restore(state: dict[str, Any]) -> None:
    import matplotlib.pyplot as plt

    plt.close("all")
    os.environ.clear()
    os.environ.update(state["environment"])
    os.chdir(state["folder"])


@contextmanager
def quiet() -> Iterator[None]:
    import matplotlib.pyplot as plt

    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


@contextmanager
def harness(folder: Path, backbone: str, seconds: float = 10.0) -> Iterator[Harness]:
    """A harness whose hub is in this process."""
    from tests.fake_hub import fake_hub, use_hub

    with fake_hub() as hub, pytest.MonkeyPatch.context() as patch:
        use_hub(patch, hub, folder / "hub")
        (folder / "here").mkdir()
        patch.chdir(folder / "here")  # a name that is taken for a folder is made there
        yield Harness(folder, backbone, seconds)


def table(results: list[Result]) -> str:
    """Calls by outcome."""
    counts = Counter(result.outcome for result in results)
    outcomes = ("refused", "legal", "wrong", "silent", "changed", "slow")
    return ", ".join(f"{counts[name]:,} {name}" for name in outcomes)
