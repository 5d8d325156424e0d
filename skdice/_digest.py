"""A checksum of data and settings."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def digest(*values: Any) -> str:
    """A checksum of data and settings that is the same in every process.

    The values are numbers, strings, arrays, tensors, modules, estimators, lists, mappings,
    dataclasses or plain objects.
    """
    checksum = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        if isinstance(value, np.ndarray) and value.dtype != object:
            checksum.update(f"{value.dtype}{value.shape}".encode())
            checksum.update(np.ascontiguousarray(value).tobytes())
        elif hasattr(value, "tocsr"):  # a sparse matrix
            add([value.shape, value.indptr, value.indices, value.data])
        elif isinstance(value, Mapping):
            add([[str(key), item] for key, item in value.items()])
        elif isinstance(value, (list, tuple, np.ndarray)):
            checksum.update(f"[{len(value)}".encode())
            if all(isinstance(item, int) for item in value):
                checksum.update(repr(value).encode())
            else:
                for item in value:
                    add(item)
        elif isinstance(value, torch.nn.Module):
            add([repr(value), value.state_dict()])
        elif hasattr(value, "get_params") and not isinstance(value, type):
            params = value.get_params(deep=False)  # what it has learnt, and callbacks, do not count
            add([type(value).__name__, {n: v for n, v in params.items() if n != "callbacks"}])
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            add([[f.name, getattr(value, f.name)] for f in dataclasses.fields(value)])
        elif isinstance(value, torch.utils.data.Dataset):
            add(vars(value))
        else:
            text = re.sub(r" at 0x[0-9a-fA-F]+", "", f"{type(value).__name__}:{value!r};")
            checksum.update(text.encode("utf-8", "backslashreplace"))

    for value in values:
        add(value)
    return checksum.hexdigest()
