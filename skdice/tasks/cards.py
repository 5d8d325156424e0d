"""A task in model cards and in the configurations of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skdice._types import Model
from skdice._warn import warn
from skdice.exceptions import ServingWarning
from skdice.metrics.decisions.positive import positive_class
from skdice.tags.schemes import infer_scheme
from skdice.tasks._base import Task
from skdice.tasks.classification import positive_index
from skdice.text.words import marks_subwords

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class TaskCard:
    """What a saved model says of its task, and what it learns of a model that others trained."""

    hub_tag: ClassVar[str]
    example: ClassVar[str]  # of X, as code
    text: ClassVar[str] = "Ann lives in Rome"  # for a pipeline
    unit: ClassVar[str] = "texts"  # what the loss counts
    is_default: ClassVar[bool] = True  # for a model of transformers with this head

    # ---- the model card

    def background(self, model: Model) -> str | None:
        """The name of the negative class, if there is one."""
        return None

    def transformers_code(self, model: Model) -> str:
        """Code that predicts with plain transformers."""
        return f"""\
from transformers import pipeline
model = pipeline("{self.hub_tag}", "FOLDER_OR_REPO_ID")
model("{self.text}")"""

    def notes(self, model: Model, native: bool) -> str:
        """How predictions of skdice and of transformers differ, if `native` can be read."""
        return ""

    def served_by(self, model: Model) -> str:
        """What runs a head of skdice's own."""
        name = type(model).__name__
        return f"Plain transformers cannot run its head, as {name}.from_pretrained can."

    def pipeline_caveat(self, model: Model) -> str:
        """Why transformers cannot run the model, or would predict otherwise, if so."""
        return ""

    # ---- models of transformers

    def params_around_model(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an estimator around a model that others trained."""
        return params

    def fitted_of(self, model: Model, config: PreTrainedConfig) -> dict[str, Any]:
        """The fitted attributes that follow from a configuration of transformers.

        ``"order"`` among them is the order in which the outputs of its head are put.
        """
        raise NotImplementedError

    def describe(self, model: Model, config: PreTrainedConfig) -> None:
        """Put the labels of the outputs into a configuration of transformers."""
        names = [str(label) for label in model.outputs_.tolist()]
        config.id2label = dict(enumerate(names))
        config.label2id = {name: i for i, name in enumerate(names)}


class TextCard(TaskCard):
    """Labels of texts or pairs."""

    hub_tag = "text-classification"
    text = "Win a free prize now"
    example = f'["{text}"]'

    def background(self, model: Model) -> str | None:
        """The other class than the positive one of two."""
        positive = positive_index(model)
        return None if positive is None else str(model.classes_[1 - positive])

    def notes(self, model: Model, native: bool) -> str:
        """What happens to texts that do not fit in one input, and to rows for a person."""
        longest = model.max_length_
        how = "cuts them there" if model.long_texts == "truncate" else "reads them in windows"
        notes = f"Texts of more than {longest} subwords: skdice {how}. "
        notes += (
            f"A pipeline needs `truncation=True, max_length={longest}` in its call, and then reads "
            "the beginning only."
            if native
            else f"Encoder and head read elsewhere see the first {longest} subwords only."
        )
        if margin := getattr(model, "tuned_for_", {}).get("reject_margin"):
            notes += (
                " The tuned decision leaves rows to a person, by a margin of "
                f"{margin:.3g} in log-odds. A head cannot do that: this model decides them too."
            )
        return notes

    def served_by(self, model: Model) -> str:
        """What can run a head that is not the architecture's own."""
        return f"{super().served_by(model)} It runs that of a fit with pooling='native'."

    def params_around_model(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters with the model's own head."""
        if (pooling := params.get("pooling", "native")) != "native":
            raise ValueError(
                f"pooling={pooling!r} is another head than the model's own: leave it out"
            )
        return {**params, "pooling": "native"}

    def fitted_of(self, model: Model, config: PreTrainedConfig) -> dict[str, Any]:
        """The classes, and of two the positive one."""
        names = _label_names(config)
        state: dict[str, Any] = {"multilabel": False, "n_features_in": None}
        if config.problem_type == "multi_label_classification":
            numbered = names == [str(i) for i in range(len(names))]
            classes: list[Any] = list(range(len(names))) if numbered else names
            return {**state, "multilabel": True, "classes": classes}
        if len(names) == 2:
            positive = names[1] if model.pos_label is None else str(model.pos_label)
            state["positive"] = positive_class(np.array(sorted(names)), np.zeros(2), positive)
        return {**state, "classes": sorted(names), "order": np.argsort(names)}

    def describe(self, model: Model, config: PreTrainedConfig) -> None:
        """Put the labels and the kind of problem into a configuration."""
        super().describe(model, config)
        config.problem_type = (
            "multi_label_classification" if model.multilabel_ else "single_label_classification"
        )


class TokenCard(TaskCard):
    """Spans of tokens, whose heads no model of transformers has."""

    hub_tag = "token-classification"
    example = '[["Ann", "lives", "in", "Rome"]]'
    unit = "tokens"


class TagCard(TokenCard):
    """Tags of tokens."""

    def background(self, model: Model) -> str | None:
        """The tag outside of spans."""
        return "O"

    def transformers_code(self, model: Model) -> str:
        """Code in which a pipeline joins the tags, where it can."""
        joins = ', aggregation_strategy="first"' if _are_joined(model) else ""
        return super().transformers_code(model).replace('ID")', f'ID"{joins})')

    def notes(self, model: Model, native: bool) -> str:
        """What a pipeline makes of tags and of long texts."""
        notes = (
            f"skdice reads texts of more than {model.max_length_} subwords in windows. A pipeline "
            "cuts them at `model.tokenizer.model_max_length`, or reads parts with `stride=`; set "
            f"that to {model.max_length_} if it is larger, or such texts are an error."
        )
        if model.constrained and model.scheme_ != "plain":
            notes += (
                " skdice predicts the best well-formed sequence of tags, and a pipeline the best "
                "tag of each word alone: a few entities may differ."
            )
        return f"{self.pipeline_caveat(model)}\n\n{notes}".strip()

    def pipeline_caveat(self, model: Model) -> str:
        """Why a pipeline cannot join the tags, if it cannot."""
        if _are_joined(model):
            return ""
        return (
            "A pipeline of transformers joins tags B-TYPE and I-TYPE only, and this tagger's are "
            f"in the scheme {model.scheme_!r}: with an `aggregation_strategy`, parts of an entity "
            "become entities. Call `predict` of skdice instead, or train on "
            "`skdice.tags.convert_scheme(y)`, which gives IOB2."
        )

    def fitted_of(self, model: Model, config: PreTrainedConfig) -> dict[str, Any]:
        """Tags and scheme from the labels of a model."""
        names = _label_names(config)
        scheme = infer_scheme([], names) if model.scheme == "auto" else model.scheme
        return {"classes": sorted(names), "scheme": scheme, "order": np.argsort(names)}


class EntityCard(TagCard):
    """Entities of raw texts."""

    example = '["Ann lives in Rome."]'
    is_default = False

    def transformers_code(self, model: Model) -> str:
        """Code whose pipeline gets the words, where it would find others."""
        code, skips = super().transformers_code(model), model.glued == "skip"
        if marks_subwords(model.tokenizer_) and not skips:
            return code
        glued = ', glued="skip"' if skips else ""
        return code.replace(
            f'model("{self.text}")',
            "from skdice.text import pipeline_entities\n"
            f"pipeline_entities(model, {self.example}{glued})",
        )

    def pipeline_caveat(self, model: Model) -> str:
        """That a pipeline finds more, where glued words are skipped."""
        if model.glued != "skip":
            return ""
        return (
            "This recognizer has `glued='skip'`: unlike a pipeline of transformers it finds no "
            "entity that begins behind another character without a blank, such as a handle "
            "(@name). Call `pipeline_entities(pipeline, texts, glued='skip')` of skdice.text."
        )

    def fitted_of(self, model: Model, config: PreTrainedConfig) -> dict[str, Any]:
        """Tags in IOB2 from the labels of a model."""
        names = _label_names(config)
        scheme = infer_scheme([], names)
        if scheme == "plain":  # a pipeline joins neighbours of one type
            names = [tag if tag == "O" else f"I-{tag}" for tag in names]
        elif scheme not in ("iob1", "iob2"):
            raise ValueError(
                f"the model's labels are in the scheme {scheme!r} ({names[:5]}), which a "
                "recognizer does not read: use DiceTokenClassifier.from_transformers"
            )
        return {"tags": sorted(names), "scheme": "iob2", "order": np.argsort(names)}


class MultiSpanCard(TagCard):
    """All answers to a question, as tags."""

    example = '[("Who sings?", "Every day Ann sings in Rome.")]'
    is_default = False


class ReadingCard(TaskCard):
    """One answer to a question."""

    hub_tag = "question-answering"
    example = MultiSpanCard.example

    def transformers_code(self, model: Model) -> str:
        """Code that loads the model: transformers 5 has no pipeline for reading."""
        return """\
from transformers import AutoModelForQuestionAnswering, AutoTokenizer
model = AutoModelForQuestionAnswering.from_pretrained("FOLDER_OR_REPO_ID")
tokenizer = AutoTokenizer.from_pretrained("FOLDER_OR_REPO_ID")"""

    def fitted_of(self, model: Model, config: PreTrainedConfig) -> dict[str, Any]:
        """The threshold, of which a configuration knows nothing."""
        return {"null_threshold": None if model.null_threshold == "auto" else model.null_threshold}

    def describe(self, model: Model, config: PreTrainedConfig) -> None:
        """Leave the configuration as it is: there are no labels."""


_CARDS: dict[str, TaskCard] = {
    "classification": TextCard(),
    "tagging": TagCard(),
    "entities": EntityCard(),
    "mrc-ner": TokenCard(),
    "qa": ReadingCard(),
    "multi-span-qa": MultiSpanCard(),
}


def card_of(task: Task) -> TaskCard:
    """What a saved model says of its task.

    Examples
    --------
    >>> from skdice.tasks import TASKS
    >>> from skdice.tasks.cards import card_of
    >>> card_of(TASKS["tagging"]).hub_tag
    'token-classification'
    """
    return _CARDS[task.name]


def _label_names(config: PreTrainedConfig) -> list[str]:
    """The labels of a model of transformers, in the order of its outputs."""
    known: dict[Any, str] = config.id2label or {}
    names = [str(known.get(i, f"LABEL_{i}")) for i in range(config.num_labels or 0)]
    if len(names) < 2:
        raise ValueError(
            f"the model has {len(names)} output, and a classifier needs 2 or more: a model of "
            "regression, or of one logit, is not read"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"the model names a label twice: {names}: mend id2label in config.json")
    if any(name.startswith("LABEL_") for name in names):
        warn(
            f"the model's config.json has no names for its labels: they are {names}",
            ServingWarning,
        )
    return names


def _are_joined(model: Model) -> bool:
    """Tell if a pipeline makes the same entities of the tags, as it does in IOB1 and IOB2."""
    tags = model.outputs_.tolist()
    return model.scheme_ == "plain" or all(t == "O" or t[:2] in ("B-", "I-") for t in tags)
