"""Files of a model's folder: checked before anything in it is run or taken for true."""

from __future__ import annotations

import importlib.util
import inspect
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
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
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


def folder_state(where: str) -> tuple[Any, ...]:
    """What tells whether a folder has changed: its small files, and the dates of its weights."""
    folder = Path(where)
    small = [(name, f.read_bytes()) for name in _CODE if (f := folder / name).is_file()]
    weights = (file for pattern in _WEIGHTS for file in sorted(folder.glob(pattern)))
    return (*small, *((file.name, *_dated(file)) for file in weights))


def _dated(file: Path) -> tuple[int, ...]:
    """Size, date and number of a file; nothing of a link that leads nowhere."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino


def refuse_code(where: str, n_tensors: int, n_weights: int) -> None:
    """Refuse a folder for which code would be run or fetched, or whose sizes cannot be true.

    `n_tensors` and `n_weights` are what its files hold.
    """
    for name in _CODE:
        path = Path(where) / name
        if path.is_file():
            content = read_json(path)
            refuse_keys(content, name, str(path))
            if name == "config.json":
                _refuse_sizes(content, path, n_tensors, n_weights)


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


def _refuse_sizes(content: dict[str, Any], path: Path, n_tensors: int, n_weights: int) -> None:
    """Refuse numbers of layers and sizes that the weights beside a config.json cannot have.

    What its architecture does not read, such as a time stamp that others wrote, is no size.
    """
    for key, value in _items(_of_architecture(content)):
        limit = max(n_weights, 2**24)
        if re.search("(layer|group|expert|block|stage|depth)s?$|group_num$", key):
            limit = max(n_tensors // 4, 64)  # a layer has more than 4
        elif key == "num_labels":
            limit = 2**16
        if isinstance(value, int) and value > limit and "theta" not in key:
            raise ValueError(
                f"{str(path)!r} has {key}={value}, which does not fit the {n_tensors} tensors of "
                f"{n_weights} weights beside it: get the folder again"
            )


def _of_architecture(content: dict[str, Any]) -> dict[str, Any]:
    """The entries of a config.json that the configuration of its architecture declares."""
    from transformers import CONFIG_MAPPING

    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        return content
    cls = CONFIG_MAPPING[kind]
    known = {*inspect.signature(cls.__init__).parameters, *cls.attribute_map, "num_labels"}
    return {key: value for key, value in content.items() if key in known}


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
