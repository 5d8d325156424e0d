"""Files that tests write."""

from __future__ import annotations

import json


def put(folder, text, name="a.conll", encoding="utf-8"):
    """A file of a text."""
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def lines(*values):
    """The text of JSON lines."""
    return "\n".join(map(json.dumps, values))


def put_json(folder, *values, name="a.jsonl"):
    """A file of JSON lines, or of one array."""
    return put(folder, lines(*values) if name.endswith("l") else json.dumps(values), name)
