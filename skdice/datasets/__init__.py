"""Readers of the field's formats, and a small corpus of our own."""

from skdice.datasets._corpus import load_town_notes
from skdice.datasets.annotations import read_annotations, write_annotations
from skdice.datasets.conll import read_conll, write_conll
from skdice.datasets.dataset import Dataset, read_dataset
from skdice.datasets.hub import from_hf
from skdice.datasets.squad import read_squad
from skdice.datasets.texts import read_table, read_texts

__all__ = [
    "Dataset",
    "from_hf",
    "load_town_notes",
    "read_annotations",
    "read_conll",
    "read_dataset",
    "read_squad",
    "read_table",
    "read_texts",
    "write_annotations",
    "write_conll",
]
