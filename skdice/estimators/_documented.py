"""The documentation of the parameters and attributes that estimators share.

A class describes its own parameters, and those by which it means something of its own.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def _entries(section: str) -> dict[str, str]:
    """From each name in a section of numpydoc to its lines."""
    return {m[1]: m[0] for m in re.finditer(r"^(\w+) :.*\n(?: +.*\n)*", section, re.M)}


_TASK = _entries("""
loss : str or Loss
    One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
    object such as ``TverskyLoss(alpha=0.3, beta=0.7)``.
pos_label : label or None
    The positive class of a binary problem, whose F1 the overlap losses optimise. None is the
    label 1 of {0, 1} or {-1, 1}; otherwise the rarer class, or the second where their counts
    differ by no more than chance. Inside a meta-estimator that numbers the labels (voting,
    stacking, bagging, one-vs-rest) give the number.
backbone : str
    An encoder or decoder that `AutoModel` loads, by hub id or local folder.
revision : str or None
    A branch, a tag or a commit of the backbone on the hub; None is its newest commit.
max_length : int or None
    Longest window in subwords; None is what the backbone allows, 512 at most.
""")
# Here come the parameters of one class alone.
_TRAINING = _entries("""
max_epochs : int or "auto"
    Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
    over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
lr : float or "auto"
    Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen`,
    `adapter`, and the rows of an update where they are few.
batch_size : int
    Rows in a batch.
gradient_accumulation : int
    Batches per update: the same update as with one batch of all rows, in less memory.
max_grad_norm : float or None
    The gradient is clipped to this norm; None does not clip.
weight_decay : float
    Weight decay of the weight matrices. Biases and normalisation weights have none.
schedule : {"linear", "constant", "cosine"}
    How the learning rate changes after warm-up. A skorch `LRScheduler` among `callbacks` takes the
    place of `schedule` and `warmup`.
warmup : float
    Share of the updates in which the learning rate rises.
dropout : float
    Dropout before the head.
frozen : int, "embeddings", "encoder" or None
    Parts not to train. An int freezes the embeddings and that many of the lowest layers.
adapter : "lora", peft.PeftConfig or None
    Train only the head and small matrices beside the encoder's weights, which saves memory
    for large models. Needs the extra ``skdice[peft]``; see `merge_adapter`.
gradient_checkpointing : bool
    Keep only each layer's input for the backward pass: half the memory for long texts.
precision : {"auto", "fp32", "fp16", "bf16"}
    Number format of training and prediction. ``"auto"`` is bf16 on CUDA (fp16 on older GPUs).
    On a CPU it predicts in fp32, and trains in bf16 if the processor multiplies matrices at least
    1.2 times as fast in it, which is measured once in a process. Small encoders train in fp32.
    The last layer and the loss are always fp32. On a fitted estimator it acts at once, as do
    `device`, `batch_size` and `max_length`.
device : str
    ``"auto"`` is CUDA, of several GPUs one for each process, else MPS, else the CPU.
early_stopping : bool
    Stop when `score` on validation texts stops rising, and restore the best epoch.
validation_fraction : float
    Share of the rows held out by `early_stopping` if `fit` gets no validation data.
n_iter_no_change : int or "auto"
    Epochs without a better score before `early_stopping` ends the fit. ``"auto"``
    is a third of the epochs, but at least 3.
sampler : imbalanced-learn sampler or None
    Resamples the rows before each epoch of `fit`, after the validation rows are set aside.
callbacks : list of skorch callbacks or None
    Callbacks for the skorch net, which they get as `net`; the estimator is complete only after the
    fit. ``EarlyStopping`` needs ``monitor="valid_score"`` and ``lower_is_better=False``,
    ``Checkpoint`` needs ``monitor="valid_score_best"``: a fit records no ``valid_loss``.
    ``EpochScoring`` and ``BatchScoring`` take a function ``(net, X, y)`` of encoded rows; a scoring
    by name is refused.
net_params : dict or None
    Further settings of the skorch net, as in skorch's documentation, such as
    ``{"optimizer": torch.optim.NAdam}``. They override parameters of the same name. With
    ``{"optimizer__param_groups": [("head*", {"lr": 1e-3})]}`` the parameters of these names
    (the encoder's begin with ``encoder``) have their own settings; `schedule` scales the rate.
    Refused are ``module``, ``criterion``, ``callbacks``, ``train_split`` and ``warm_start``.
warm_start : bool
    Start `fit` from the weights of the last fit. Rate and epochs are chosen as for a first fit.
    Another `backbone` or `adapter` than that of the last fit is refused.
checkpoint_dir : str, Path or None
    Folder for checkpoints. A fit that was interrupted or killed goes on from the last one when
    `fit` is called again with the same data and parameters, and ends with the same weights.
    Each fit has its own subfolder. Delete the folder to begin anew, or once `fit` has returned.
    Needs an int `random_state` and no `callbacks`.
checkpoint_every : float
    Seconds between two checkpoints; 0 writes one after each update. Each epoch writes one as well.
    The last two are kept.
random_state : int, RandomState or None
    Seeds the head, dropout and batches; the caller's generators are left alone.
verbose : int
    Above 0, print the rate, the number of epochs and updates, and the precision, then skorch's
    table of epochs; in a terminal also its progress bar. With `checkpoint_dir` it says whether the
    fit begins, goes on, or was finished before.
""")
_ATTRIBUTES = _entries("""
net_ : FineTuningNet
    The trained skorch net.
tokenizer_ : transformers tokenizer
history_ : list of dict
    An epoch's ``train_loss``, ``lr``, ``dur`` (seconds) and, with validation, ``valid_score``.
n_iter_ : int
    Epochs trained.
lr_ : float
    The peak learning rate of the last fit.
max_epochs_ : int
    The number of epochs that it was to make.
""")


def documented(cls: Class) -> Class:
    """Complete the docstring of an estimator by what is shared and by all defaults.

    The signature gets the order of the docstring.
    """
    doc = inspect.cleandoc(cls.__doc__ or "")
    parts = re.split(r"(?m)^((?:Parameters|Attributes)\n-+\n)((?:.+\n)+)", doc)
    if len(parts) == 1:  # `python -OO` removes docstrings
        return cls
    summary, title, parameters, between, title_of_fitted, attributes, rest = parts

    own = _entries(parameters)
    alone = {name: text for name, text in own.items() if name not in _TASK | _TRAINING}
    texts = _TASK | alone | _TRAINING | own
    init: Any = vars(cls)["__init__"]
    signature = inspect.signature(init)
    itself, *given = signature.parameters.values()
    if lacking := [p.name for p in given if p.name not in texts]:
        raise TypeError(f"{cls.__name__}: describe {lacking} in its docstring or in {__name__}")
    given.sort(key=lambda p: list(texts).index(p.name))
    init.__signature__ = signature.replace(parameters=[itself, *given])

    fields = {field.name for field in dataclasses.fields(cls)}
    fitted = _entries(attributes)
    fitted |= {k: v for k, v in _ATTRIBUTES.items() if k in fields and k not in fitted}
    entries = [_with_default(texts[p.name], p.default) for p in given]
    sections = [summary, title, *entries, between, title_of_fitted, *fitted.values(), rest]
    cls.__doc__ = "".join(sections)
    return cls


def _with_default(entry: str, default: object) -> str:
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return entry.replace("\n", f", default={shown}\n", 1)
