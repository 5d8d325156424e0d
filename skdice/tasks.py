"""The tasks: what the hub and transformers call each, and what its data look like."""

from __future__ import annotations

from dataclasses import dataclass, replace

from skdice._tools import TOOLS


@dataclass(frozen=True)
class Task:
    """What is known of a task beside its estimator's code."""

    estimator: str  # the name of its class
    hub_tag: str
    head: str | None  # of transformers, as in BertForTokenClassification
    peft_type: str | None
    example: str  # of X, as code
    keys: tuple[str, ...]  # of a row of X in JSON lines
    formats: tuple[str, ...]  # in which predictions are written; "auto" is the first
    has_classes: bool = True  # otherwise positions in the text are predicted


TASKS = {
    "tagging": Task(
        "DiceTokenClassifier",
        hub_tag="token-classification",
        head="TokenClassification",
        peft_type="TOKEN_CLS",
        example='[["Ann", "lives", "in", "Rome"]]',
        keys=("tokens",),
        formats=("conll", "jsonl", "spans"),
    ),
    "classification": Task(
        "DiceSequenceClassifier",
        hub_tag="text-classification",
        head="SequenceClassification",
        peft_type="SEQ_CLS",
        example='["Win a free prize now"]',
        keys=("text", "text_pair"),
        formats=("tsv", "jsonl"),
    ),
    "qa": Task(
        "DiceQuestionAnswerer",
        hub_tag="question-answering",
        head="QuestionAnswering",
        peft_type="QUESTION_ANS",
        example='[("Who sings?", "Every day Ann sings in Rome.")]',
        keys=("question", "context"),
        formats=("squad", "jsonl"),
        has_classes=False,
    ),
}
TASKS["mrc-ner"] = replace(
    TASKS["tagging"], estimator="DiceMRCTagger", head=None, peft_type=None, has_classes=False
)
TASKS["entities"] = replace(
    TASKS["tagging"],
    estimator="DiceEntityRecognizer",
    example='["Ann lives in Rome."]',
    keys=("text",),
    formats=("jsonl", *(name for name in TOOLS if name != "jsonl")),
)
