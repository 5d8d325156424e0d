"""The tasks and the formats of annotation tools: a line for each.

None is imported here, so that the command line can list them before torch is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

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
# The formats that are read alone, and what makes their files.
NOT_WRITTEN = {
    "bioc": "the package bioc writes it",
    "pubtator": "the package bioc writes it",
    "spacy": "`python -m spacy convert --converter ner` reads the columns of 'conll'",
    "webanno": "INCEpTION imports 'conll' as CoNLL 2002, with a space for each tab",
}
TASK_NAMES, TOOLS = tuple(TASKS), tuple(FORMATS)
WRITTEN = tuple(name for name in FORMATS if name not in NOT_WRITTEN)


def made(folder: str, place: str) -> Any:
    """An object of a class of this table, which stands in a package of skdice."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"skdice.{folder}.{module}"), name)()
