"""Fitted estimators as folders that transformers reads; loading one executes nothing.

A folder holds what ``save_pretrained`` of transformers writes, head and labels included, and
``skdice.json`` with what transformers has no place for. A head that is not the architecture's own
is in ``head.safetensors``, and the encoder in ``encoder/``. Such a folder has no ``config.json`` at
its top, so that transformers refuses it instead of loading the encoder with a random head.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdice import backbones
from skdice._warn import warn
from skdice.engine.adapters import load_adapter
from skdice.engine.devices import resolve_device, seeded
from skdice.engine.module import EncoderModule, TaskModel, freeze
from skdice.estimators.card import model_card, scheme_caveat
from skdice.losses import LOSSES, Loss
from skdice.tasks import TASKS

FORMAT = 3
STATE = "skdice.json"
HEAD = "head.safetensors"
# Settings of training that may hold code; a loaded estimator predicts without them.
_NOT_STORED = ("callbacks", "net_params", "random_state", "sampler")


def _plain(value: Any, where: str) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Loss):
        return _loss_to_json(value)
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


def _loss_to_json(loss: Loss) -> dict[str, Any]:
    for name, cls in LOSSES.items():
        if type(loss) is cls:
            params = loss.get_params(deep=False)
            return {"name": name, "params": {k: _plain(v, f"loss.{k}") for k, v in params.items()}}
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


def _history(estimator: Any) -> list[dict[str, Any]]:
    """What JSON can hold of each epoch's record, to which callbacks may add anything."""
    rows: list[dict[str, Any]] = []
    for epoch in estimator.history_:
        rows.append({})
        for name, value in epoch.items():
            with contextlib.suppress(TypeError):
                rows[-1][name] = _plain(value, name)
    return rows


# ---- saving


def save(estimator: Any, folder: Path, metrics: dict[str, float] | None = None) -> Path:
    """Write `estimator` to `folder`; each file is complete before it takes its place."""
    module = estimator._module
    fitted = {**estimator._fitted_state(), "pooling": module.pooling}
    state = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "task_model": isinstance(module, TaskModel),
        "adapter": bool(module.adapted),
        "params": _params(estimator),
        "fitted": {name: _plain(value, name) for name, value in fitted.items()},
        "history": _history(estimator),
    }
    card = model_card(estimator, metrics or {})
    if caveat := scheme_caveat(estimator):
        warn(caveat)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
        new = Path(temporary)
        _write_model(estimator, new)
        (new / "README.md").write_text(card, encoding="utf-8")
        state["files"] = {name: _checksum(new / name) for name in _weights(new)}
        (new / STATE).write_text(json.dumps(state, indent=2, ensure_ascii=False), encoding="utf-8")
        _clear(folder, keep=_files(new))
        put_in_place(new, folder)
    return folder


def put_in_place(new: Path, folder: Path) -> None:
    """Move complete files to where they belong; the one that lists all others comes last."""
    for file in sorted(_files(new), key=lambda path: path.name == STATE):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        os.replace(new / file, folder / file)


def _files(folder: Path, pattern: str = "*") -> list[Path]:
    """Files in a folder and its subfolders, relative to it."""
    return sorted(p.relative_to(folder) for p in folder.rglob(pattern) if p.is_file())


def _params(estimator: Any) -> dict[str, Any]:
    given = estimator.get_params(deep=False)
    left_out = (*_NOT_STORED, "adapter", "checkpoint_dir")
    params = {name: _plain(given[name], name) for name in given if name not in left_out}
    # A configuration of peft is in its own file.
    params["adapter"] = "lora" if estimator._module.adapted else None
    seed = estimator.random_state
    params["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    lost = [n for n in _NOT_STORED if given.get(n) is not None and params.get(n) is None]
    if lost:
        warn(
            f"{', '.join(lost)} cannot be written as JSON and will be None in what from_pretrained "
            "reads: set them there before the next fit, or pickle the estimator"
        )
    return params


def _write_model(estimator: Any, folder: Path) -> None:
    from safetensors.torch import save_file

    module = estimator._module
    whole = isinstance(module, TaskModel)
    where = folder if whole else folder / "encoder"
    with backbones.quiet_transformers():
        if whole:
            describe(module.model.config, estimator)
        if module.adapted:
            (adapted,) = module.adapted
            adapted.peft_config["default"].base_model_name_or_path = str(estimator.backbone)
            adapted.save_pretrained(where, save_embedding_layers=False)
            module.model.config.save_pretrained(where)
        else:
            module.model.save_pretrained(where)
        estimator.tokenizer_.save_pretrained(where)
    if not whole:
        head = {
            name: values.detach().cpu().contiguous()
            for name, values in module.state_dict().items()
            if not name.startswith("encoder.")
        }
        save_file(head, folder / HEAD, metadata={"format": "pt"})


def describe(config: Any, estimator: Any) -> None:
    """Put the labels and the kind of problem into a configuration of transformers."""
    if estimator.task == "qa":
        return
    names = [str(label) for label in estimator.classes_.tolist()]
    if getattr(estimator, "multilabel_", False):
        config.problem_type = "multi_label_classification"
        known = [config.id2label.get(i) for i in range(len(names))]  # of a wrapped model
        names = names if any(map(_is_generic, known)) else known
    elif estimator.task == "classification":
        config.problem_type = "single_label_classification"
    config.id2label = dict(enumerate(names))
    config.label2id = {name: i for i, name in enumerate(names)}


def _is_generic(label: Any) -> bool:
    """Whether this is the name that transformers gives to a class without one."""
    return label is None or str(label).startswith("LABEL_")


def _weights(folder: Path) -> list[str]:
    """Files of weights in a folder, relative to it."""
    return [str(path) for path in _files(folder, "*.safetensors")]


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _clear(folder: Path, keep: list[Path]) -> None:
    """Delete a model that was saved here in another form, which would still be read."""
    if not (folder / STATE).is_file():
        return
    names = ("config.json", "adapter_config.json", "adapter_model.safetensors", "model.safetensors")
    for path in (Path(HEAD), *(Path(part, name) for part in ("", "encoder") for name in names)):
        if path not in keep:
            (folder / path).unlink(missing_ok=True)
    if not any(path.parts[0] == "encoder" for path in keep):
        shutil.rmtree(folder / "encoder", ignore_errors=True)


# ---- loading


def read_state(folder: Path) -> dict[str, Any]:
    """The JSON of a saved estimator."""
    path = folder / STATE
    if not path.is_file():
        raise ValueError(
            f"{str(folder)!r} holds no {STATE}: give a folder that save_pretrained of an skdice "
            "estimator wrote, or use from_transformers for a model of transformers"
        )
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}): save the estimator again") from error
    version = state.get("format") if isinstance(state, dict) else None
    if version != FORMAT:
        raise ValueError(
            f"{str(folder)!r} has format {version!r}, and this skdice reads format {FORMAT}: "
            "install the version that wrote it, or fit the estimator again and save it"
        )
    needed: dict[str, type] = {"class": str, "params": dict, "fitted": dict, "files": dict}
    needed |= {"history": list, "task_model": bool, "adapter": bool}
    for name, kind in needed.items():
        if not isinstance(state.get(name), kind):
            raise ValueError(
                f"{str(path)!r} is damaged (no proper {name!r}): save the estimator again"
            )
    return state


def load(cls: type[Any], folder: Path, device: str) -> Any:
    """Read an estimator of class `cls` from `folder`."""
    state = read_state(folder)
    if state["class"] != cls.__name__:
        raise ValueError(
            f"{str(folder)!r} holds a {state['class']}, not a {cls.__name__}: use "
            f"{state['class']}.from_pretrained"
        )
    with _damaged(folder):
        params = dict(state["params"])
        for name in {"loss", "end_loss", "match_loss"} & set(params):
            params[name] = _loss_from_json(params[name])
        estimator = cls(**{**params, "device": device})
        estimator._restore_fitted(state["fitted"])
    _check_files(folder, state["files"])
    where = folder if state["task_model"] else folder / "encoder"
    estimator._module = _read_module(estimator, where, state)
    estimator.tokenizer_ = backbones.load_tokenizer(str(where))
    return ready(estimator, state["history"], device)


@contextlib.contextmanager
def _damaged(folder: Path) -> Iterator[None]:
    """Name the folder in errors that are raised while it is read."""
    from safetensors import SafetensorError

    wrong = (KeyError, TypeError, IndexError, AttributeError, RuntimeError, SafetensorError)
    try:
        yield
    except wrong as error:
        raise ValueError(
            f"{str(folder)!r} is damaged ({type(error).__name__}: {error}): save the estimator "
            "again, or install the version of skdice that wrote it"
        ) from error


def ready(estimator: Any, history: list[dict[str, Any]], device: str) -> Any:
    """Give a net to an estimator whose module was loaded."""
    freeze(estimator._module, estimator.frozen)
    estimator.net_ = estimator._make_net(criterion=torch.nn.Module(), seed=0)
    estimator.net_.set_params(device=resolve_device(device))
    estimator.net_.initialize()
    estimator.net_.set_training(False)
    estimator._obeyed = estimator._at_once()
    estimator.history_, estimator.n_iter_ = history, len(history)
    estimator.net_.history.extend({"batches": [], **epoch} for epoch in history)
    return estimator


def _check_files(folder: Path, files: dict[str, str]) -> None:
    for name, checksum in files.items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{str(folder)!r} lacks {name!r}: copy the whole folder again")
        if _checksum(path) != checksum:
            raise ValueError(
                f"{str(path)!r} is not the file that {STATE} was written with (its checksum "
                "differs): copy the folder again; if another program changed the weights, read it "
                "with from_transformers, which does not look at skdice.json"
            )
    if surplus := sorted(set(_weights(folder)) - set(files)):
        raise ValueError(
            f"{str(folder)!r} holds weights that {STATE} does not speak of: {surplus}: take them "
            "away, or copy the folder again"
        )


def _read_module(estimator: Any, where: Path, state: dict[str, Any]) -> EncoderModule:
    """The module whose weights, or those of an adapter to its backbone, are in `where`."""
    task, dropout = estimator.task, estimator.dropout
    source = estimator.backbone if state["adapter"] else str(where)
    n_outputs = len(estimator.classes_) if TASKS[task].has_classes else 2
    if not state["task_model"]:
        module = _read_own_head(estimator, source, where.parent, n_outputs)
        module.pooling = state["fitted"].get("pooling")
    elif state["adapter"]:
        with seeded(0, "cpu"):
            model = backbones.load_task_model(source, task, n_outputs)
        module = TaskModel(model, task, dropout)
    else:
        module = TaskModel(read_model(source, task), task, dropout)
    if state["task_model"]:
        _check_labels(estimator, backbones.load_config(str(where)), where)
    if state["adapter"]:
        with _damaged(where):
            load_adapter(module, where)
    return module


def _read_own_head(estimator: Any, source: str, folder: Path, n_outputs: int) -> EncoderModule:
    """An encoder with the head of skdice's own in `folder`."""
    from safetensors.torch import load_file

    with seeded(0, "cpu"):
        module: EncoderModule = estimator._assemble(backbones.load_encoder(source), n_outputs)
    with _damaged(folder):
        head = load_file(folder / HEAD)
        names = {name for name in module.state_dict() if not name.startswith("encoder.")}
        if set(head) != names:
            raise KeyError(f"{HEAD} holds {sorted(head)}, not {sorted(names)}")
        module.load_state_dict(head, strict=False)
    return module


def _check_labels(estimator: Any, config: Any, folder: Path) -> None:
    """Refuse labels or a kind of problem in which the two files differ."""
    if estimator.task == "qa":
        return
    labels = [config.id2label.get(i) for i in range(len(config.id2label))]
    wanted = [str(label) for label in estimator.classes_.tolist()]
    multilabel = getattr(estimator, "multilabel_", False)  # its columns may have any names
    if len(labels) != len(wanted) or (labels != wanted and not multilabel):
        raise ValueError(
            f"{str(folder)!r}: {STATE} has the labels {wanted} and config.json {labels}: they must "
            "be the same in the same order; save the estimator again"
        )
    kind = "multi_label" if multilabel else "single_label"
    if estimator.task == "classification" and config.problem_type != f"{kind}_classification":
        raise ValueError(
            f"{str(folder)!r}: config.json has problem_type={config.problem_type!r}, and {STATE} a "
            f"{kind} problem: save the estimator again"
        )


def read_model(where: str, task: str) -> Any:
    """A model of transformers for a task; no weight may be missing, left over or random."""
    config = backbones.load_config(where)
    cls = backbones.task_class(task, config)
    architecture = (config.architectures or ["no architecture"])[0]
    if cls is None or architecture != cls.__name__:
        raise ValueError(
            f"{where!r} holds a {architecture}, and {task} needs a "
            f"...For{TASKS[task].head}: use the estimator of its "
            "task, or give it as backbone= and fit"
        )
    with seeded(0, "cpu"), _damaged(Path(where)):
        try:
            model, faults = backbones.load_weights(cls, where, config)
        except OSError as error:
            raise ValueError(f"{where!r} could not be loaded: {error}") from error
    words = {"missing": "lacks", "unexpected": "has besides", "mismatched": "has other sizes of"}
    for what, word in words.items():
        # Older versions of transformers wrote these, and heads of positions do not use them.
        names = [name for name in faults[what] if not name.endswith("position_ids")]
        if task != "classification":
            names = [name for name in names if ".pooler." not in name]
        if names:
            raise ValueError(
                f"{where!r} {word} {len(names)} tensors of a {cls.__name__}, such as {names[0]!r}: "
                "get the folder again, or give it as backbone= and fit"
            )
    return model


# ---- models that others trained


def wrap(cls: type[Any], source: str | Path, device: str, params: dict[str, Any]) -> Any:
    """A fitted estimator around a model of transformers of its task."""
    if TASKS[cls.task].head is None:
        raise TypeError(
            f"transformers has no model with the heads of {cls.__name__}: give its folder as "
            "backbone= and fit, or use DiceTokenClassifier.from_transformers"
        )
    if cls.task == "classification" and params.setdefault("pooling", "native") != "native":
        raise ValueError(
            f"pooling={params['pooling']!r} is another head than the model's own: leave it out"
        )
    estimator = cls(**{"backbone": str(source), "device": device, **params})
    estimator._check_params()
    where = backbones.find_backbone(str(source))
    model = read_model(where, estimator.task)
    module = TaskModel(model, estimator.task, estimator.dropout)
    fitted = estimator._fitted_of(model.config)
    estimator._restore_fitted(fitted)
    if "order" in fitted:
        with torch.no_grad():
            for values in module.output_layer.parameters():
                values.copy_(values[fitted["order"]])
    describe(model.config, estimator)
    estimator._module, estimator.tokenizer_ = module, backbones.load_tokenizer(where)
    estimator._max_length()  # refuses one that is too long
    return ready(estimator, [], device)


def label_names(config: Any) -> list[str]:
    """The labels of a model of transformers, in the order of its outputs."""
    names = [str(config.id2label.get(i, f"LABEL_{i}")) for i in range(config.num_labels)]
    if len(names) < 2:
        raise ValueError(
            f"the model has {len(names)} output, and a classifier needs 2 or more: a model of "
            "regression, or of one logit, is not read"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"the model names a label twice: {names}: mend id2label in config.json")
    if any(map(_is_generic, names)):
        warn(f"the model's config.json has no names for its labels: they are {names}")
    return names
