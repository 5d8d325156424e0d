"""Adapters of peft: small matrices that are trained in place of the encoder's weights."""

from __future__ import annotations

import contextlib
import copy
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from skdice._digest import digest
from skdice._lock import PROCESS
from skdice.engine.module import EncoderModule, TaskModel

# peft's name for each head of transformers.
PEFT_TYPES = {
    "TokenClassification": "TOKEN_CLS",
    "SequenceClassification": "SEQ_CLS",
    "QuestionAnswering": "QUESTION_ANS",
}


def peft() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import peft
    except ImportError as error:
        raise ImportError("adapter= needs peft: pip install 'skdice[peft]'") from error
    return peft


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings about names of transformers that peft uses although they are deprecated."""
    with PROCESS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"(peft|transformers)\.")
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set")  # of GPT-2's layers
        yield


def add_adapter(module: EncoderModule, adapter: Any) -> None:
    """Freeze all weights of a module but its head's, and add an adapter to the encoder.

    `adapter` is ``"lora"`` or a `peft.PeftConfig`, which is copied. Where it names no modules, all
    linear layers of the encoder get an adapter, and the head's own layers are trained as a whole.
    """
    lib = peft()
    config = lib.LoraConfig(r=16, lora_alpha=32) if adapter == "lora" else copy.deepcopy(adapter)
    if getattr(config, "target_modules", "") is None:
        config.target_modules = _linear_layers(module)
    config.task_type = "FEATURE_EXTRACTION"
    if isinstance(module, TaskModel):
        config.task_type = PEFT_TYPES[module.kind]
        if getattr(config, "modules_to_save", "") is None:
            config.modules_to_save = [
                name
                for name, part in module.head.named_children()
                if part is not module.encoder and list(part.parameters())
            ]
    with _quiet():
        _attach(module, lib.get_peft_model(module.model, config))


def load_adapter(module: EncoderModule, folder: Path) -> None:
    """The adapter of a peft folder, on a module as it was before `add_adapter`."""
    with _quiet():
        adapted = peft().PeftModel.from_pretrained(module.model, str(folder), is_trainable=True)
    _attach(module, adapted)


def checksum_of_backbone(module: EncoderModule) -> str:
    """A checksum of the weights that an adapter leaves as they are, under whatever names."""
    frozen = [
        p
        for name, p in module.named_parameters()
        if name.startswith("encoder.") and name not in (module.trainable or ())
    ]
    return digest(sorted(map(digest, frozen)))


def merge_adapter(module: EncoderModule) -> EncoderModule:
    """The same module with the adapter merged into its weights; do not use the one given again."""
    (adapted,) = module.adapted
    merged = adapted.merge_and_unload()
    if isinstance(module, TaskModel):
        return TaskModel(merged.requires_grad_(True), module.kind, module.dropout.p)
    module.encoder = merged
    module.adapted, module.trainable = (), None
    return module.requires_grad_(True)


def _attach(module: EncoderModule, adapted: Any) -> None:
    # In a tuple, so that torch does not register the module's own parts a second time.
    module.adapted = (adapted,)
    module.trainable = {name for name, p in module.named_parameters() if p.requires_grad}


def _linear_layers(module: EncoderModule) -> str:
    """A pattern of the names of all linear layers of the encoder."""
    from transformers.pytorch_utils import Conv1D

    within = module.model is not module.encoder
    prefix = f"{module.model.base_model_prefix}." if within else ""
    names = {
        name.rpartition(".")[2]
        for name, part in module.encoder.named_modules()
        if isinstance(part, (nn.Linear, Conv1D))
    }
    return f"{re.escape(prefix)}(.*\\.)?({'|'.join(sorted(names))})"
