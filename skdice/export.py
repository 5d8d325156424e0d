"""Fitted text estimators as ONNX, for servers that run without torch."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from skdice import backbones
from skdice._checks import check_has, checked
from skdice.engine.adapters import merge_adapter
from skdice.engine.module import TaskModel
from skdice.engine.parts import settle_attention
from skdice.estimators.storage import STATE
from skdice.folders import replaced
from skdice.tasks.cards import card_of

__all__ = ["export_onnx"]

MODEL, INT8 = "model.onnx", "model_int8.onnx"


@checked
def export_onnx(estimator: Any, folder: str | Path, *, int8: bool = False) -> Path:
    """Write a fitted tagger, classifier or reader as ONNX, with its tokenizer and labels.

    The graph takes ``input_ids``, ``attention_mask`` and, where the architecture has them,
    ``token_type_ids``, each of shape (n_texts, length). Its output ``logits`` has shape (n_texts,
    length, n_classes) for a tagger, (n_texts, n_classes) for a classifier, whatever its pooling,
    and (n_texts, length, 2), for starts and ends, for a reader. It sees one window: what reads a
    longer text elsewhere has to cut it, and to pool the logits of a classifier's windows.

    Parameters
    ----------
    estimator : DiceTokenClassifier, DiceSequenceClassifier or DiceQuestionAnswerer
        Fitted. A tuned decision is exported from what ``BiasTuned*.save_pretrained`` wrote.
    folder : str or Path
        Made if missing. It gets ``model.onnx``, ``config.json`` and the tokenizer's files, all
        of which replace those of an earlier export at once.
    int8 : bool, default=False
        Also write ``model_int8.onnx``, whose matrix products are of 8-bit integers (dynamic
        quantisation of onnxruntime): a quarter of the size, and other predictions for some texts.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ImportError
        Without the extra ``skdice[onnx]``.
    TypeError
        For a `DiceMRCTagger`, whose heads no server supports.
    ValueError
        If torch cannot convert the architecture (XLNet, with torch 2.13), or the folder holds a
        saved estimator.

    Examples
    --------
    >>> import tempfile
    >>> from skdice import DiceSequenceClassifier
    >>> from skdice.export import export_onnx
    >>> clf = DiceSequenceClassifier(max_epochs=1, random_state=0)
    >>> clf = clf.fit(["win a prize", "see you", "free cash", "at lunch"], [1, 0, 1, 0])
    >>> folder = export_onnx(clf, tempfile.mkdtemp())
    >>> sorted(path.name for path in folder.glob("*.onnx"))
    ['model.onnx']
    """
    _check_installed()
    check_has("estimator", estimator, "task", "tokenizer_")
    check_is_fitted(estimator)
    if estimator.task.head is None:
        raise TypeError(
            "DiceMRCTagger has heads that no server knows: export a DiceTokenClassifier"
        )
    if (Path(folder) / STATE).is_file():
        raise ValueError(
            f"folder={str(folder)!r} holds a saved estimator, whose files are guarded: give "
            f"another folder, such as {str(Path(folder, 'onnx'))!r}"
        )
    module = copy.deepcopy(estimator.module_).cpu().eval()
    settle_attention(module, "cpu")
    if module.adapted:
        module = merge_adapter(module).eval()
    with replaced(folder, lambda name: name in (MODEL, INT8)) as new:
        _convert(module, estimator, new / MODEL)
        if int8:
            _quantise(new / MODEL, new / INT8)
        config = copy.deepcopy(module.encoder.config)
        card_of(estimator.task).describe(estimator, config)
        if isinstance(module, TaskModel):
            config.architectures = [type(module.head).__name__]
        config.save_pretrained(new)
        with backbones.quiet_transformers():
            estimator.tokenizer_.save_pretrained(new)
    return Path(folder)


class _Logits(nn.Module):
    """Logits of all positions, or of whole texts, by the names that servers use."""

    def __init__(self, module: Any, per_position: bool) -> None:
        super().__init__()
        self.module = module
        self.per_position = per_position

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        return self.module.all_logits(inputs) if self.per_position else self.module(**inputs)


def _convert(module: Any, estimator: Any, path: Path) -> None:
    tokenizer = estimator.tokenizer_
    rows = tokenizer(["a b c", "a"], padding=True, return_tensors="pt")
    known = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {name: rows[name] for name in known if name in rows}
    both = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    model = _Logits(module, estimator.task.per_position)
    kind = module.encoder.config.model_type
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter, about its own code
        try:
            torch.onnx.export(
                model,
                (),
                str(path),
                kwargs=inputs,
                dynamo=True,
                dynamic_shapes=dict.fromkeys(inputs, both),
                input_names=list(inputs),
                output_names=["logits"],
                verbose=False,
                external_data=False,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise ValueError(
                f"torch {torch.__version__} cannot convert {kind} to ONNX: choose another "
                "backbone, or serve the folder of save_pretrained"
            ) from error


def _quantise(source: Path, target: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # The exporter's shapes of inner values may be wrong; without them they are inferred anew.
    model = onnx.load(source)
    model.graph.ClearField("value_info")
    quantize_dynamic(model, target, weight_type=QuantType.QInt8)


def _check_installed() -> None:
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401  (torch's exporter asks for it)
    except ImportError as error:
        raise ImportError("ONNX needs more packages: pip install 'skdice[onnx]'") from error
