"""Texts with entities, as annotation tools write them: one file for each tool."""

from skdice.datasets.annotations.api import Annotations, read_annotations, write_annotations

__all__ = ["Annotations", "read_annotations", "write_annotations"]
