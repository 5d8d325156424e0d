"""Arguments of valid calls, by the name of the parameter and the kind of data."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import skdice
from skdice.inspection import imbalance

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
    "n_bootstraps": 3, "device": "cpu", "compare_losses.losses": ["ce"],
    "LossSearchCV.strategy": "full",
}  # fmt: skip

# Values that do not depend on the data, by parameter or by owner and parameter.
TABLE = {
    "span_probabilities_classes": ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"],
    "spans": SPANS,
    "ids": [f"q{i}" for i in range(len(ANSWERS))],
    "expected_calibration_error_y_true": [0, 1, 0, 1, 1, 0],
    "y_proba": [0.2, 0.7, 0.4, 0.9, 0.3, 0.1],
    "per_thousand": 50,
    "matrix": [[0, 1], [20, 0]],
    "RecallAtPrecision_precision RejectAt_accuracy PrecisionAtRecall_recall": 0.9,
    "text_columns": "text",
    "label_column": "label",
    "imbalance": imbalance(LABELS),
    "texts": ["Ann sings.", "No."],
    "entities": [[(0, 3, "PER")], []],
    "format": "jsonl",
    "repo_id": "ann/notes",
    "loss": "dice",
    "class_counts": [4, 2],
    "SpanConfusionDisplay_counts": [[3, 1, 0], [4, 2, 1], [4, 2, 0]],
    "types": ["LOC", "PER"],
    "bias": [-1.0, 0.0, 1.0],
    "train_loss precision recall score rejected error": [0.2, 0.5, 0.7],
    "task": "classification",
    "param_distributions": {"loss": ["ce"]},
    "compare_losses_seeds": 1,
}
PLAIN = {name: value for names, value in TABLE.items() for name in names.split()}


class Makers:
    """Valid arguments by name, for one kind of data; models are fitted once."""

    KINDS = ("numbers", "texts", "tags", "spans", "answers", "files", "entities", "passages")

    def __init__(self, folder: Path, backbone: str) -> None:
        self.folder, self.backbone = folder, backbone
        written = folder / "written"
        written.mkdir()
        self.of_session = {
            "backbone": backbone,
            "folder": written,
            "export_onnx_folder": folder / "exported",
            "write_conll_path": written / "w.conll",
            "write_annotations_path": written / "a.jsonl",
            "to_json_path": written / "p.json",
        }

    def knows(self, key: str) -> bool:
        """Whether there is a maker for a parameter, or for ``owner.parameter``."""
        name = key.replace(".", "_")
        return key in QUICK or name in {**PLAIN, **self.of_session} or hasattr(self, "a_" + name)

    def find(self, key: str, kind: str) -> Any:
        """A fresh value, or a shared model."""
        name = key.replace(".", "_")
        if key in QUICK or name in PLAIN:
            return copy.deepcopy(QUICK.get(key, PLAIN.get(name)))
        if name in self.of_session:
            return self.of_session[name]
        return getattr(self, "a_" + name)(kind)

    # ---- rows

    def a_X(self, kind: str) -> Any:  # noqa: N802
        texts = [" ".join(row) for row in WORDS]
        rows = {
            "numbers": np.array([[i % 2, i / 6, 1.0] for i in range(6)]),
            "texts": texts,
            "entities": texts,
            "answers": [("who is it", text) for text in texts],
            "passages": [("who is it", text) for text in texts],
        }
        return copy.deepcopy(rows.get(kind, WORDS))

    def a_y(self, kind: str) -> Any:
        rows = {
            "tags": TAGS, "files": TAGS, "spans": SPANS, "answers": ANSWERS, "entities": ENTITIES,
            "passages": ANSWERS,
        }  # fmt: skip
        return copy.deepcopy(rows.get(kind, LABELS))

    a_X_val = a_pool = a_X  # noqa: N815
    a_y_val = a_y_true = a_tags = a_y

    def a_y_pred(self, kind: str) -> Any:
        if kind == "answers":
            return [row[0][1] if row else "" for row in ANSWERS]
        return self.a_y(kind)

    a_predictions = a_y_pred

    def a_proba(self, kind: str) -> Any:
        return [np.full((len(row), 5), 0.2) for row in WORDS]

    def a_dataset(self, kind: str) -> Any:
        import datasets

        return datasets.Dataset.from_dict({"text": self.a_X("texts"), "label": LABELS})

    # ---- models

    @functools.cache  # noqa: B019 - one instance for each session
    def model(self, kind: str, fitted: bool = True) -> Any:
        cls = {
            "numbers": skdice.DiceClassifier,
            "texts": skdice.DiceSequenceClassifier,
            "answers": skdice.DiceQuestionAnswerer,
            "spans": skdice.DiceMRCTagger,
            "entities": skdice.DiceEntityRecognizer,
            "passages": skdice.DiceMultiSpanAnswerer,
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

    @functools.cache  # noqa: B019
    def a_RejectDisplay_from_estimator_estimator(self, kind: str) -> Any:  # noqa: N802
        X, y = self.a_X(kind), self.a_y(kind)
        settings = {"reject": 0.2, "reject_label": "?" if isinstance(y[0], str) else -1}
        return skdice.BiasTunedClassifier(self.model(kind), cv="prefit", **settings).fit(X, y)

    @functools.cache  # noqa: B019
    def a_comparison(self, kind: str) -> Any:
        from skdice.model_selection import compare_losses

        X, y = self.a_X("numbers"), self.a_y("numbers")
        model = self.model("numbers", fitted=False)
        return compare_losses(model, X, y, X_test=X, y_test=y, losses=["ce"], seeds=2)

    # ---- files

    def a_path(self, kind: str) -> Any:
        from skdice.datasets import write_conll

        names = {"texts": "t.csv", "answers": "s.json", "numbers": "c.conllu"}
        path = self.folder / names.get(kind, "c.conll")
        if kind == "texts":
            rows = zip(self.a_X(kind), LABELS, strict=True)
            path.write_text("text,label\n" + "".join(f"{x},{y}\n" for x, y in rows))
        elif kind == "answers":
            paragraphs = []
            for i, (question, context) in enumerate(self.a_X(kind)):
                answers = [{"text": t, "answer_start": s} for s, t in ANSWERS[i]]
                asked = {"id": f"q{i}", "question": question, "answers": answers}
                asked |= {"is_impossible": not answers}
                paragraphs.append({"context": context, "qas": [asked]})
            path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
        elif kind == "numbers":
            columns = "1\tanna\tanna\tPROPN\tNNP\t_\t0\troot\t_\t_\n"
            path.write_text(columns + "\n" + columns)
        else:
            write_conll(path, WORDS, TAGS)
        return path

    def a_show_entities_X(self, kind: str) -> Any:  # noqa: N802
        return self.find("texts", kind)

    @functools.cache  # noqa: B019
    def a_from_pretrained_folder(self, kind: str) -> Any:
        model = self.model(kind)
        if kind == "texts":  # the pooling that transformers has, too
            model = clone(model).set_params(pooling="native").fit(self.a_X(kind), self.a_y(kind))
        return model.save_pretrained(self.folder / f"saved-{kind}")

    a_from_transformers_folder = a_from_pretrained_folder

    # ---- single values

    def a_logits(self, kind: str) -> Any:
        shape = {"numbers": (6, 2), "texts": (6,), "tags": (2, 3, 4), "spans": (6, 2)}
        sizes = shape.get(kind, (6, 2))
        return torch.linspace(-1, 1, int(np.prod(sizes))).reshape(sizes)

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
