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
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdice import backbones
from skdice._checks import shown
from skdice._digest import digest
from skdice._model_files import read_json
from skdice._types import Model
from skdice._warn import warn
from skdice.engine import adapters
from skdice.engine.devices import check_device, seeded
from skdice.engine.module import EncoderModule, TaskModel, freeze
from skdice.estimators.card import model_card
from skdice.exceptions import ServingWarning
from skdice.folders import replaced
from skdice.losses import LOSSES, Loss
from skdice.tasks import Task
from skdice.tasks.cards import card_of

FORMAT = 4
STATE = "skdice.json"
HEAD = "head.safetensors"
# Parameters that further training cannot change.
MADE_OF = ("backbone", "revision", "adapter", "frozen")
# The files and folders that programs which load a model look for.
_MODEL_FILES = re.compile(
    r"encoder|skdice\.json|head\.safetensors|MODEL_CARD\.md|chat_template\.jinja"
    r"|(model|pytorch_model|adapter_model)(-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?"
    r"|(config|adapter_config|generation_config|tokenizer|tokenizer_config|added_tokens)\.json"
    r"|(special_tokens_map|vocab|tekken)\.json|(vocab|merges)\.txt|additional_chat_templates"
    r"|(tokenizer|spiece|spm|sentencepiece.*|tiktoken)\.model"
)
# What the last fit chose, or was given; `skdice train` notes how its table was read.
_CHOSEN = ("lr_", "max_epochs_", "tuned_for_", "table_")
# What takes the place of a value in a folder that an earlier version saved.
VALUES: dict[str, dict[str, str | None]] = {
    "frozen": {"none": None},
    "on_misaligned": {"fix": "expand", "error": "raise"},
}
# What such folders cannot be read with.
GONE = {"label_all_subwords": True, "window_pooling": "logsumexp", "unlabeled": "unknown"}
# Parameters of such folders that changed no prediction: of estimators, and of losses.
NEEDLESS = (
    *("resume", "language", "overlapping", "unlabeled", "label_all_subwords"),
    *("end_loss", "match_loss", "start_weight", "end_weight", "match_weight"),
)
OF_OLD_LOSSES = ("ema_decay", "absent", "all_ranks", "ohem_ratio")
# Settings of training that may hold code; a loaded estimator predicts without them.
_NOT_STORED = ("callbacks", "net_params", "random_state", "sampler")


def _plain(value: object, where: str) -> Any:
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
            params = loss.get_params(deep=False).items()
            # By label: keys keep their type in pairs.
            pairs = {k: _pairs(v) for k, v in params if isinstance(v, Mapping)}
            plain = {k: _plain(pairs.get(k, v), f"loss.{k}") for k, v in params}
            return {"name": name, "params": plain} | ({"by_label": [*pairs]} if pairs else {})
    raise TypeError(
        f"loss={loss!r} is not one of skdice's own losses and cannot be written as JSON: pickle "
        "the estimator instead"
    )


def _pairs(by_label: Mapping[Any, Any]) -> list[list[Any]]:
    """Labels with their values, as Python's own types."""
    pairs = by_label.items()
    return [[x.item() if isinstance(x, np.generic) else x for x in pair] for pair in pairs]


def _loss_from_json(loss: object) -> Any:
    """Read what `_loss_to_json` wrote; other values are left as they are."""
    if not isinstance(loss, dict):
        return loss
    params = {k: _loss_from_json(v) for k, v in loss["params"].items() if k not in OF_OLD_LOSSES}
    params |= {k: dict(params[k]) for k in loss.get("by_label", ())}
    return LOSSES[loss["name"]](**params)


def _history(estimator: Model) -> list[dict[str, Any]]:
    """Return what JSON can hold of each epoch's record, to which callbacks may add anything."""
    rows: list[dict[str, Any]] = []
    for epoch in estimator.net_.epochs():  # also while it is trained
        rows.append({})
        for name, value in epoch.items():
            with contextlib.suppress(TypeError):
                rows[-1][name] = _plain(value, name)
    return rows


# ---- saving


def save(
    estimator: Model,
    folder: str | Path,
    metrics: dict[str, float] | None = None,
    card: dict[str, Any] | None = None,
) -> Path:
    """Write `estimator` to `folder`, which is replaced as a whole when all is written."""
    module = estimator.module_
    _check_numbers(module, "the fitted model")
    fitted = {**estimator._fitted_state(), "pooling": module.pooling}
    state = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "task_model": isinstance(module, TaskModel),
        "adapter": bool(module.adapted),
        "params": _params(estimator),
        "fitted": {name: _plain(value, name) for name, value in fitted.items()},
        "history": _history(estimator),
        "chosen": {name: vars(estimator)[name] for name in _CHOSEN if name in vars(estimator)},
    }
    readme = model_card(estimator, metrics or {}, card or {}).encode()
    if caveat := card_of(estimator.task).pipeline_caveat(estimator):
        warn(caveat, ServingWarning)
    if module.adapted:  # the backbone's files are not in the folder
        state["backbone"] = adapters.checksum_of_backbone(module)
    with replaced(folder, is_model_file) as new:
        _write_model(estimator, new)
        state["files"] = {
            str(path.relative_to(new).as_posix()): _checksum(path)
            for path in sorted(new.rglob("*"))
            if path.is_file()
        }
        state["card"] = hashlib.sha256(readme).hexdigest()
        (new / _card_name(Path(folder))).write_bytes(readme)
        state["checksum"] = _checksum_of(state)
        text = json.dumps(state, indent=2, ensure_ascii=False)
        (new / STATE).write_text(text, encoding="utf-8")
    return Path(folder)


def is_model_file(name: str) -> bool:
    """Return True if this is the name of a part of a saved model."""
    return _MODEL_FILES.fullmatch(name) is not None


def _card_name(folder: Path) -> str:
    """README.md, unless the folder has one that was not written, or was changed, by others."""
    readme, ours = folder / "README.md", None
    with contextlib.suppress(OSError, ValueError):
        ours = read_json(folder / STATE).get("card")
    return "MODEL_CARD.md" if readme.is_file() and _checksum(readme) != ours else readme.name


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_of(state: dict[str, Any]) -> str:
    """The checksum of all that `state` holds, those of the files included."""
    rest = {name: value for name, value in state.items() if name != "checksum"}
    text = json.dumps(json.loads(json.dumps(rest)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _params(estimator: Model) -> dict[str, Any]:
    given = estimator.get_params(deep=False)
    left_out = (*_NOT_STORED, "adapter", "checkpoint_dir")
    params = {name: _plain(given[name], name) for name in given if name not in left_out}
    # A configuration of peft is in its own file.
    params["adapter"] = "lora" if estimator.module_.adapted else None
    seed = estimator.random_state
    params["random_state"] = int(seed) if isinstance(seed, (int, np.integer)) else None
    lost = [n for n in _NOT_STORED if given.get(n) is not None and params.get(n) is None]
    if lost:
        warn(
            f"{', '.join(lost)} cannot be written as JSON and will be None in what from_pretrained "
            "reads: set them there before the next fit, or pickle the estimator",
            ServingWarning,
        )
    return params


def _write_model(estimator: Model, folder: Path) -> None:
    from safetensors.torch import save_file

    module = estimator.module_
    whole = isinstance(module, TaskModel)
    where = folder if whole else folder / "encoder"
    with backbones.quiet_transformers():
        if whole:
            card_of(estimator.task).describe(estimator, module.model.config)
        if module.adapted:
            (adapted,) = module.adapted
            adapted.peft_config["default"].base_model_name_or_path = str(estimator.backbone)
            adapted.save_pretrained(where, save_embedding_layers=False)
            (where / "README.md").unlink()  # peft's own
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


# ---- loading


def read_state(folder: Path) -> dict[str, Any]:
    """The JSON of a saved estimator."""
    path = folder / STATE
    if not path.is_file():
        raise ValueError(
            f"{str(folder)!r} holds no {STATE}: give a folder that save_pretrained of an skdice "
            "estimator wrote, or use from_transformers for a model of transformers"
        )
    state = read_json(path)
    version = state.get("format")
    if version != FORMAT:
        raise ValueError(
            f"{str(folder)!r} has format {version!r}, and this skdice reads format {FORMAT}: "
            "install the version that wrote it, or fit the estimator again and save it"
        )
    if state.get("checksum") != _checksum_of(state):
        raise ValueError(
            f"{str(path)!r} was changed after it was written (its checksum differs), or is "
            "damaged: copy the folder again, or save the estimator again"
        )
    return state


def load(cls: type[Any], folder: Path, device: str) -> Any:
    """Read an estimator of class `cls` from `folder`."""
    check_device(device)
    state = read_state(folder)
    if state["class"] != cls.__name__:
        raise ValueError(
            f"{str(folder)!r} holds a {state['class']}, not a {cls.__name__}: use "
            f"{state['class']}.from_pretrained"
        )
    _check_files(folder, state["files"])
    with _reading(folder):
        params = as_now(state["params"])
        if "loss" in params:
            params["loss"] = _loss_from_json(params["loss"])
        estimator = cls(**{**params, "device": device})
        vars(estimator).update(state.get("chosen", {}))
        estimator._restore_fitted(state["fitted"])
    where = folder if state["task_model"] else folder / "encoder"
    estimator.module_ = _read_module(estimator, where, state)
    estimator.tokenizer_ = backbones.load_tokenizer(str(where))
    return ready(estimator, state["history"])


def as_now(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that an earlier version saved, by the names and values of this one."""
    params = dict(params)
    for name, value in GONE.items():
        if params.get(name) == value:
            raise ValueError(f"it was trained with {name}={value!r}, which is gone")
    for name in NEEDLESS:
        params.pop(name, None)
    if "misaligned" in params:
        params["on_misaligned"] = params.pop("misaligned")
    for name in VALUES.keys() & params.keys():
        value = params[name]
        if isinstance(value, str):
            params[name] = VALUES[name].get(value, value)
    if isinstance(params.get("checkpoint_every"), str):  # "60s"
        params["checkpoint_every"] = float(params["checkpoint_every"].removesuffix("s"))
    return params


def _reading(folder: str | Path) -> contextlib.AbstractContextManager[None]:
    remedy = ". It is damaged, or another version of skdice wrote it: fit and save again"
    return backbones.explained(repr(str(folder)), folder, remedy)


def made_of(estimator: Model) -> dict[str, tuple[str, str]]:
    """Checksums of the parameters that further training must find as they were, and their text."""
    values = {name: getattr(estimator, name) for name in MADE_OF}
    return {name: (digest(value), shown(value)) for name, value in values.items()}


def ready(estimator: Model, history: list[dict[str, Any]]) -> Any:
    """Give a net to an estimator whose module was loaded."""
    _check_numbers(estimator.module_, "the folder's model")
    freeze(estimator.module_, estimator.frozen)
    estimator.module_.made_of = made_of(estimator)
    if not estimator.module_.adapted:  # it was merged into the weights
        estimator.module_.made_of["adapter"] = digest(None), shown(None)
    criterion: Any = torch.nn.Module()
    criterion.is_multilabel = getattr(estimator, "multilabel_", False)
    estimator.net_ = estimator._make_net(criterion=criterion, seed=0)
    estimator.net_.initialize()
    estimator.net_._set_training(False)
    estimator.net_.applied = estimator._inference_params()
    estimator.history_, estimator.n_iter_ = history, len(history)
    estimator.net_.history.extend({"batches": [], **epoch} for epoch in history)
    return estimator


def _check_numbers(module: torch.nn.Module, what: str) -> None:
    for name, values in module.named_parameters():
        if not bool(values.isfinite().all()):
            raise ValueError(
                f"{what} has NaN or infinite weights in {name!r}, from which no prediction "
                "follows: fit again with a smaller lr, or get the files again"
            )


def _check_files(folder: Path, files: dict[str, str]) -> None:
    """Refuse a folder with another file of the model than was saved, or with one more or less."""
    paths = {path for part in (folder, folder / "encoder") for path in part.glob("*")}
    present = {p.relative_to(folder).as_posix() for p in paths if _MODEL_FILES.fullmatch(p.name)}
    for name in sorted(files.keys() | present - {STATE, "MODEL_CARD.md", "encoder"}):
        path = folder / name
        if not path.is_file():
            wrong = "is missing"
        elif name not in files:
            wrong = f"is new: {STATE} does not speak of it"
        elif _checksum(path) != files[name]:
            wrong = f"was changed: its checksum differs from that in {STATE}"
        else:
            continue
        raise ValueError(
            f"{str(path)!r} {wrong}. Copy the whole folder again; if the change is wanted, read it "
            "with from_transformers, which does not look at skdice.json"
        )


def _read_module(estimator: Model, where: Path, state: dict[str, Any]) -> EncoderModule:
    """The module whose weights, or those of an adapter to its backbone, are in `where`."""
    head, dropout = estimator.task.head, estimator.dropout
    source = str(where)
    if state["adapter"]:
        source = _local_backbone(estimator.backbone, estimator.revision)
    n_outputs, config = estimator.task.n_outputs(estimator), backbones.load_config(str(where))
    if not state["task_model"]:
        with seeded(0, "cpu"):
            encoder = backbones.load_encoder(source, config=config)
            module: EncoderModule = estimator.task.assemble(estimator, encoder, n_outputs)
        _read_own_head(module, where.parent)
        module.pooling = state["fitted"].get("pooling")
    elif state["adapter"]:
        with seeded(0, "cpu"):
            model = backbones.load_with_head(source, head, n_outputs, config=config)
        module = TaskModel(model, head, dropout)
    else:
        module = TaskModel(read_model(source, estimator.task), head, dropout)
    if state["adapter"]:
        with _reading(where):
            adapters.load_adapter(module, where)
        # Folders written before this was noted have none.
        if state.get("backbone", found := adapters.checksum_of_backbone(module)) != found:
            raise ValueError(
                f"backbone={estimator.backbone!r} holds other weights than those that the adapter "
                f"in {str(where)!r} was trained on: get these again, or fit again"
            )
    return module


def _local_backbone(backbone: str, revision: str | None) -> str:
    """Where the backbone of an adapter lies; one that would have to be fetched is refused."""
    where = backbones.find_backbone(backbone, revision)
    if not Path(where).is_dir():
        raise ValueError(
            f"backbone={backbone!r}, to which the saved adapter belongs, is not on this machine, "
            f"and from_pretrained fetches nothing: get it first, by `hf download {backbone}`"
        )
    return where


def _read_own_head(module: EncoderModule, folder: Path) -> None:
    """Give a module the head of skdice's own in `folder`."""
    from safetensors.torch import load_file

    with _reading(folder):
        head = load_file(folder / HEAD)
        names = {name for name in module.state_dict() if not name.startswith("encoder.")}
        if set(head) != names:
            raise KeyError(f"{HEAD} holds {sorted(head)}, not {sorted(names)}")
        module.load_state_dict(head, strict=False)


def read_model(where: str, task: Task, revision: str | None = None) -> Any:
    """A model with the head of a task; no weight may be missing, left over or random."""
    config, head = backbones.load_config(where, revision), task.head
    cls = backbones.class_with_head(head, config)
    architecture = (config.architectures or ["no architecture"])[0]
    if cls is None or architecture != cls.__name__:
        raise ValueError(
            f"{where!r} holds a {architecture}, and {task.name} needs a ...For{head}: use the "
            "estimator of its task, or give it as backbone= and fit"
        )
    with seeded(0, "cpu"), _reading(where):
        model, faults = backbones.load_weights(cls, where, config, revision)
    words = {"missing": "lacks", "unexpected": "has besides", "mismatched": "has other sizes of"}
    for what, word in words.items():
        # Older versions of transformers wrote these, and heads of positions do not use them.
        names = [name for name in faults[what] if not name.endswith("position_ids")]
        if head != "SequenceClassification":
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
    if cls.task.head is None:
        raise TypeError(
            f"transformers has no model with the heads of {cls.__name__}: give its folder as "
            "backbone= and fit, or use DiceTokenClassifier.from_transformers"
        )
    card = card_of(cls.task)
    params = card.params_around_model(params)
    estimator = cls(**{"backbone": str(source), "device": device, **params})
    estimator._check_params()
    revision = estimator.revision
    where = backbones.find_backbone(str(source), revision)
    revision = None if Path(where).is_dir() else revision
    model = read_model(where, cls.task, revision)
    tokenizer = backbones.load_tokenizer(where, revision)
    module = TaskModel(model, cls.task.head, estimator.dropout)
    fitted = card.fitted_of(estimator, model.config)
    estimator._restore_fitted(fitted)
    if "order" in fitted:
        with torch.no_grad():
            for values in module.output_layer.parameters():
                values.copy_(values[fitted["order"]])
    card.describe(estimator, model.config)
    estimator.module_, estimator.tokenizer_ = module, tokenizer
    _ = estimator.max_length_  # refuses one that is too long
    return ready(estimator, [])
