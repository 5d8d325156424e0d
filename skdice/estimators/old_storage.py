"""Folders of formats 1 and 2, whose heads are all skdice's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skdice import backbones
from skdice.engine.devices import seeded
from skdice.engine.module import EncoderModule, TaskModel
from skdice.estimators.checks import damaged, n_outputs

__all__ = ["read_old"]

# What format 2 put before the keys of all but the encoder.
OWN = "skdice."


def read_old(estimator: Any, folder: Path, state: dict[str, Any]) -> EncoderModule:
    """The module of such a folder; that of transformers where it has the same head."""
    import transformers
    from safetensors.torch import load_file

    config = backbones.load_config(str(folder))
    with seeded(0, "cpu"), damaged(folder):
        encoder = backbones.without_pooler(transformers.AutoModel.from_config(config))
        module = estimator._assemble(encoder, n_outputs(estimator))
        weights = load_file(folder / "model.safetensors")
        if state["format"] == 2:
            weights = {
                name.removeprefix(OWN) if name.startswith(OWN) else f"encoder.{name}": values
                for name, values in weights.items()
            }
        module.load_state_dict(weights)
    module.pooling = state["fitted"].get("pooling")
    if estimator.task not in ("tagging", "qa"):
        return module
    config.num_labels = n_outputs(estimator)
    task_class = backbones.task_class(estimator.task, config)
    if task_class is None:
        return module
    with seeded(0, "cpu"):
        task_model = TaskModel(task_class(config), estimator.task, estimator.dropout)
    if len(task_model.steps) > 1:  # there is more to the architecture's own head
        return module
    task_model.encoder.load_state_dict(module.encoder.state_dict())
    task_model.output_layer.load_state_dict(module.head.state_dict())
    return task_model
