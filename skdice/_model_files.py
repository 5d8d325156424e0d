"""Files of a model's folder: what asks for code is refused before anything is loaded."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Keys of files for which transformers or peft import, patch or fetch something, or by which a value
# hides under another name.
_CODE = {
    "config.json": {
        *("auto_map", "quantization_config", "fusion_config", "kernel_config"),
        *("configuration_files", "attribute_map"),
    },
    "tokenizer_config.json": {"auto_map"},
    "adapter_config.json": {
        *("auto_map", "megatron_config", "tokenizer_name_or_path", "tokenizer_kwargs", "adapters"),
    },
}
# What needs no kernel of the hub.
_LOCAL_ATTENTION = {"eager", "sdpa", "flex_attention", "batched_mm", "grouped_mm"}
_TOKENIZER = r"(?!Auto|Rag)\w*(Tokenizer(Fast)?|Backend)"


def read_json(path: Path) -> dict[str, Any]:
    """A file that holds one JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"it holds {type(content).__name__}, not an object")
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({error}): get the file again, or save the model again"
        ) from error
    return content


def refuse_code(folder: Path) -> None:
    """Refuse a folder for which code would be run or fetched."""
    for name in _CODE:
        path = folder / name
        if path.is_file():
            refuse_keys(read_json(path), name, str(path))


def refuse_keys(content: dict[str, Any], name: str, path: str) -> None:
    packages = {"flash_attention_2"} if importlib.util.find_spec("flash_attn") else set()
    for key, value in _items(content):
        bad = key in _CODE[name] and value is not None
        if re.fullmatch("_?(attn|experts)_implementation(_internal)?", key):
            chosen = value.values() if isinstance(value, dict) else [value]
            bad = not {*map(str, chosen)} <= {*_LOCAL_ATTENTION, *packages, "None"}
        elif key == "tokenizer_class" and value is not None:
            bad = re.fullmatch(_TOKENIZER, str(value)) is None
        if bad:
            raise ValueError(
                f"{path!r} asks for code of its own or of the hub ({key}={value!r}), which skdice "
                "never runs: give a model whose architecture transformers knows, or take that "
                "entry out if you know that the model does without"
            )


def _items(content: Any) -> Iterator[tuple[str, Any]]:
    """All keys of nested JSON with their values; entries of a list have the list's key."""
    stack = [("", content)]
    while stack:
        key, value = stack.pop()
        yield key, value
        if isinstance(value, dict):
            stack += value.items()
        elif isinstance(value, list):
            stack += [(key, entry) for entry in value]
