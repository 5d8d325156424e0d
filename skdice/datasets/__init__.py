"""Readers of the field's formats, and a small corpus of our own."""

from skdice.datasets.conll import read_conll, read_conllu, write_conll

__all__ = ["read_conll", "read_conllu", "write_conll"]
