"""A checksum of data and settings."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch


def digest(*values: Any) -> str:
    """A checksum of data and settings that is the same in every process.

    The values are numbers, strings, arrays, frames, tensors, modules, estimators, lists, sets,
    mappings, dataclasses, functions, scorers or plain objects.
    """
    checksum = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        if isinstance(value, np.ndarray) and value.dtype != object:
            checksum.update(f"{value.dtype}{value.shape}".encode())
            checksum.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, (list, tuple, np.ndarray)):
            checksum.update(f"[{len(value)}".encode())
            if all(isinstance(item, int) for item in value):
                checksum.update(repr(value).encode())
            else:
                for item in value:
                    add(item)
        elif (parts := _parts(value)) is not None:
            add(parts)
        else:
            text = re.sub(r" at 0x[0-9a-fA-F]+", "", f"{type(value).__name__}:{value!r};")
            checksum.update(text.encode("utf-8", "backslashreplace"))

    for value in values:
        add(value)
    return checksum.hexdigest()


def _parts(value: Any) -> Any:
    """What a value consists of; None if it is plain."""
    if hasattr(value, "tocsr"):  # a sparse matrix
        return [value.shape, value.indptr, value.indices, value.data]
    if hasattr(value, "to_numpy") and not isinstance(value, type):  # a frame or a column
        return [[*map(str, getattr(value, "columns", []))], value.to_numpy()]
    if isinstance(value, Mapping):
        return [[str(key), item] for key, item in value.items()]
    if isinstance(value, (set, frozenset)):  # whose order differs from process to process
        return sorted(map(digest, value))
    if isinstance(value, torch.nn.Module):
        return [repr(value), value.state_dict()]
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)  # what it has learnt, and callbacks, do not count
        return [type(value).__name__, {n: v for n, v in params.items() if n != "callbacks"}]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [[f.name, getattr(value, f.name)] for f in dataclasses.fields(value)]
    if isinstance(value, torch.utils.data.Dataset):
        return vars(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list(value)
    if hasattr(value, "_score_func"):  # a scorer of scikit-learn
        return vars(value)
    if isinstance(value, FunctionType):  # by what it does: every lambda has the same name
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        held = [getattr(each, "__code__", each) for each in held]  # functions may hold each other
        return [value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, held]
    if isinstance(value, CodeType):
        return [value.co_code.hex(), value.co_names, value.co_varnames, value.co_consts]
    return None
