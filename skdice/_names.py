"""The tasks, the formats of annotation tools, and names that are gone: a line for each.

None is imported here, so that the command line can list them before torch is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

# What a file may hold, as in ``--task``.
TASKS = {
    "classification": "classification.Classification",
    "entities": "entities.Entities",
    "mrc-ner": "mrc_ner.MRC",
    "multi-span-qa": "multi_span_qa.MultiSpanReading",
    "qa": "qa.Reading",
    "tagging": "tagging.Tagging",
}
FORMATS = {
    "bioc": "bioc.BioC",
    "brat": "brat.Brat",
    "conll": "conll.Conll",
    "doccano": "doccano.Doccano",
    "jsonl": "jsonl.JsonLines",
    "label-studio": "label_studio.LabelStudio",
    "prodigy": "prodigy.Prodigy",
    "pubtator": "pubtator.PubTator",
    "spacy": "spacy.Spacy",
    "webanno": "webanno.WebAnno",
}
TASK_NAMES, TOOLS = tuple(TASKS), tuple(FORMATS)


def made(folder: str, place: str) -> Any:
    """An object of a class of this table, which stands in a package of skdice."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"skdice.{folder}.{module}"), name)()


# Public names that are gone, and what takes their place.
OLD_NAMES = {
    "skdice.inspection": {
        "ClassFrequencyDisplay": "examples/entities_and_answers/plot_rare_types.py draws it",
        "Imbalance": "call imbalance, which gives one",
        "LossGradientDisplay": "examples/losses/plot_loss_slopes.py draws it",
        "TverskySweepDisplay": "examples/losses/plot_loss_slopes.py draws it",
        "reading_imbalance": "an answer is two positives, its start and end, among the tokens",
        "span_hits": "compare predict_spans with the true spans, as in "
        "[(span[:3] in there, span.score) for there, row in zip(y, spans) for span in row]",
    },
    "skdice.metrics": {
        "convert_scheme": "import it from skdice.tags",
        "normalize_answer": "answer_exact_match_score compares answers without case and signs",
        "positive_class": "give pos_label, or read positive_ of a fitted classifier",
    },
    "skdice.text": {
        "plain_words": r"re.finditer(r'\w+|[^\w\s]', text) splits a text much alike",
    },
}


def refuse_old_name(package: str, name: str) -> NoReturn:
    """Raise for a name that a package lacks, and tell what takes the place of an old one."""
    if name in OLD_NAMES[package]:  # an AttributeError would lose its message in an import
        raise ImportError(f"{package} has no {name} any more: {OLD_NAMES[package][name]}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
