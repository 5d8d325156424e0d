"""Fitted estimators as safetensors and JSON, so that loading one executes nothing."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdice import backbones
from skdice.engine.devices import resolve_device
from skdice.engine.module import freeze
from skdice.losses import LOSSES, Loss

FORMAT = 2
STATE = "skdice.json"
# Begins the keys of all but the encoder, whose keys are those that AutoModel knows.
OWN = "skdice."


def _loss_to_json(loss: str | Loss) -> Any:
    if isinstance(loss, str):
        return loss
    for name, cls in LOSSES.items():
        if type(loss) is cls:
            params = {
                k: _loss_to_json(v) if isinstance(v, Loss) else _plain(v, f"loss.{k}")
                for k, v in loss.get_params(deep=False).items()
            }
            return {"name": name, "params": params}
    raise TypeError(
        f"loss={loss!r} is not one of skdice's own losses and cannot be written as JSON: pickle "
        "the estimator instead"
    )


def _loss_from_json(loss: Any) -> Any:
    """What `_loss_to_json` wrote; other values are left as they are."""
    if not isinstance(loss, dict):
        return loss
    params = {name: _loss_from_json(value) for name, value in loss["params"].items()}
    return LOSSES[loss["name"]](**params)


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    try:
        json.dumps(value)
    except TypeError as error:
        raise TypeError(
            f"{where}={value!r} cannot be written as JSON: pickle the estimator"
        ) from error
    return value


def _history(estimator: Any) -> list[dict[str, Any]]:
    """What JSON can hold of each epoch's record, to which callbacks may add anything."""
    rows: list[dict[str, Any]] = []
    for epoch in estimator.history_:
        rows.append({})
        for name, value in epoch.items():
            with contextlib.suppress(TypeError):
                rows[-1][name] = _plain(value, name)
    return rows


# Settings of training that may hold code; a loaded estimator predicts without them.
_NOT_STORED = ("callbacks", "net_params", "random_state", "sampler")


def save(estimator: Any, folder: Path) -> Path:
    """Write `estimator` to `folder`; each file is complete before it takes its place."""
    from safetensors.torch import save_file

    params = {
        name: _loss_to_json(value) if isinstance(value, Loss) else _plain(value, name)
        for name, value in estimator.get_params(deep=False).items()
        if name not in (*_NOT_STORED, "loss")
    }
    seed = estimator.random_state
    params["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    params["loss"] = _loss_to_json(estimator.loss)
    lost = [
        name
        for name in _NOT_STORED
        if getattr(estimator, name) is not None and params.get(name) is None
    ]
    if lost:
        warnings.warn(
            f"{', '.join(lost)} cannot be written as JSON and will be None in what from_pretrained "
            "reads: set them there before the next fit, or pickle the estimator",
            stacklevel=3,
        )
    state = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "params": params,
        "fitted": {name: _plain(v, name) for name, v in estimator._fitted_state().items()},
        "history": _history(estimator),
    }
    folder.mkdir(parents=True, exist_ok=True)
    module = estimator._module
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
        new = Path(temporary)
        module.encoder.config.save_pretrained(new)
        estimator.tokenizer_.save_pretrained(new)
        weights = {
            key.removeprefix("encoder.")
            if key.startswith("encoder.")
            else OWN + key: values.detach().cpu().contiguous()
            for key, values in module.state_dict().items()
        }
        save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
        (new / STATE).write_text(json.dumps(state, indent=2, ensure_ascii=False), encoding="utf-8")
        files = sorted(p for p in new.rglob("*") if p.is_file())
        # The state comes last: a folder that holds it holds everything it speaks of.
        files.sort(key=lambda p: p.name == STATE)
        for file in files:
            target = folder / file.relative_to(new)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
    return folder


def read_state(folder: Path) -> dict[str, Any]:
    """The JSON of a saved estimator."""
    path = folder / STATE
    if not path.is_file():
        raise ValueError(
            f"{str(folder)!r} holds no {STATE}: give a folder that save_pretrained of an skdice "
            "estimator wrote"
        )
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}): save the estimator again") from error
    if state.get("format") != FORMAT:
        raise ValueError(
            f"{str(path)!r} has format {state.get('format')!r}, this skdice reads {FORMAT}: "
            "install the version that wrote it"
        )
    return state


def load(cls: type[Any], folder: Path, device: str) -> Any:
    """Read an estimator of class `cls` from `folder`."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModel

    state = read_state(folder)
    if state["class"] != cls.__name__:
        raise ValueError(
            f"{str(folder)!r} holds a {state['class']}, not a {cls.__name__}: use "
            f"{state['class']}.from_pretrained"
        )
    params = dict(state["params"])
    for name in ("loss", "end_loss", "match_loss"):
        if name in params:
            params[name] = _loss_from_json(params[name])
    estimator = cls(**{**params, "device": device})
    fitted = estimator._restore_fitted(state["fitted"])
    estimator.tokenizer_ = backbones.load_tokenizer(str(folder))
    config = AutoConfig.from_pretrained(folder)
    encoder = backbones.without_pooler(AutoModel.from_config(config))
    estimator._module = estimator._assemble(encoder, fitted["n_outputs"], fitted["pooling"])
    weights = {
        key.removeprefix(OWN) if key.startswith(OWN) else f"encoder.{key}": values
        for key, values in load_file(folder / "model.safetensors").items()
    }
    estimator._module.load_state_dict(weights)
    freeze(estimator._module, estimator.frozen)
    estimator.net_ = estimator._make_net(criterion=torch.nn.Module(), seed=0)
    estimator.net_.set_params(device=resolve_device(device))
    estimator.net_.initialize()
    estimator.history_, estimator.n_iter_ = state["history"], len(state["history"])
    estimator.net_.history.extend({"batches": [], **epoch} for epoch in state["history"])
    return estimator
