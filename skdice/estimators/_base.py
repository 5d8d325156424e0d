"""What the transformer estimators share: parameters, building the net, training, probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdice import backbones
from skdice._compat import HasMethods, Interval, StrOptions
from skdice.engine.batching import EncodedDataset, Padder
from skdice.engine.module import EncoderWithHead, freeze
from skdice.engine.net import FineTuningNet, check_callbacks, resolve_device, seeded
from skdice.engine.schedules import SCHEDULES
from skdice.losses import Loss, resolve_loss
from skdice.resampling.batches import check_sampler, draw_rows

__all__ = [
    "TransformerEstimator",
    "check_device",
    "check_known",
    "check_reduction",
    "check_validation",
    "draw_seed",
    "split_indices",
]

# Outputs that differ this little, beside those of before training, are of an encoder that is lost.
ALIKE = 0.05


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from `random_state`; None draws fresh entropy, not numpy's global generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


def check_device(device: str) -> str:
    """The kind of `device` (``"cpu"``, ``"cuda"``, ``"mps"``); refuses what is not there."""
    try:
        found = torch.device(resolve_device(device))
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a torch device: use 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'"
        ) from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} asks for CUDA, and there is none: use 'auto'")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={device!r} asks for GPU {found.index}, and they are numbered from 0 to "
            f"{torch.cuda.device_count() - 1}: use one of these, or 'auto'"
        )
    return found.type


def check_validation(X_val: Any, y_val: Any) -> None:
    """Refuse one of `X_val` and `y_val` without the other."""
    if (X_val is None) != (y_val is None):
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(f"{missing} is missing: give X_val and y_val together, or neither")


def check_known(known: Iterable[Any], held: Iterable[Any], what: str) -> None:
    """Refuse validation labels of which training holds none: their score would be 0 throughout."""
    known, held = set(known), set(held)
    if held and not known & held:
        raise ValueError(
            f"y_val holds none of the {what} of y: it has {sorted(held, key=str)}, and y has "
            f"{sorted(known, key=str)}: give both in the same form"
        )


def check_reduction(loss: Loss, name: str = "loss") -> None:
    """Refuse a loss of which training would get several values instead of one to follow."""
    if loss.reduction == "none":
        raise ValueError(
            f"{name}={loss!r} gives a value for each element or class, and training needs one for "
            "all: leave out reduction='none'"
        )


class TransformerEstimator(BaseEstimator):
    """Base of the text estimators; subclasses hold the parameters and the task's own steps."""

    _parameter_constraints: dict[str, list[Any]] = {
        "loss": [str, Loss],
        "backbone": [str, Path],
        "max_length": [Interval(Integral, 4, None, closed="left"), None],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "gradient_accumulation": [Interval(Integral, 1, None, closed="left")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "warmup": [Interval(Real, 0, 1, closed="both")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "frozen": [
            StrOptions({"none", "embeddings", "encoder"}),
            Interval(Integral, 0, None, closed="left"),
        ],
        "precision": [StrOptions({"auto", "fp32", "fp16", "bf16"})],
        "device": [str],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "sampler": [HasMethods("fit_resample"), None],
        "callbacks": [list, None],
        "net_params": [dict, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # Declared for type checkers; the subclasses' constructors set them.
    loss: str | Loss
    backbone: str
    max_length: int | None
    max_epochs: int
    lr: float
    batch_size: int
    gradient_accumulation: int
    max_grad_norm: float | None
    weight_decay: float
    schedule: str
    warmup: float
    dropout: float
    frozen: str | int
    precision: str
    device: str
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    sampler: Any
    callbacks: list[Any] | None
    net_params: dict[str, Any] | None
    warm_start: bool
    random_state: Any
    verbose: int
    net_: FineTuningNet
    history_: list[dict[str, Any]]

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__alpha`` also works while `loss` is a name."""
        if any(key.startswith("loss__") for key in params):
            loss = params.pop("loss", self.loss)
            self.loss = resolve_loss(loss)
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    # ---- before the work

    def _check_params(self, builds: bool = True) -> None:
        """Refuse bad parameters before anything is loaded or trained.

        A net that goes on needs no `backbone`, which may be gone.
        """
        self._validate_params()
        check_reduction(resolve_loss(self.loss))
        check_callbacks(self.callbacks, self.net_params)
        if self.sampler is not None:
            check_sampler(self.sampler)
        if builds:
            backbones.find_backbone(self.backbone)
        kind = check_device(self.device)
        if self.precision == "fp16" and kind == "cpu":
            raise ValueError("precision='fp16' needs a GPU: use 'auto', 'bf16' or 'fp32' on a CPU")

    def _draw_epochs(self, y: Any, seed: int) -> Callable[[int], np.ndarray] | None:
        """From an epoch's number to the rows that `sampler` draws for it."""
        if self.sampler is None:
            return None

        @lru_cache(maxsize=1)  # the first epoch's rows are also counted and checked
        def rows(epoch: int) -> np.ndarray:
            mixed = np.random.default_rng([seed, epoch]).integers(2**31 - 1)
            return draw_rows(self.sampler, y, int(mixed))

        rows(0)  # a strategy that cannot be is refused before anything is loaded
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """The module goes with the net, once."""
        state = dict(super().__getstate__())
        if "net_" in state:
            state.pop("_module", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """One module again for the net and the estimator."""
        super().__setstate__(state)
        if hasattr(self, "net_"):
            self._module: EncoderWithHead = self.net_.module_

    # ---- the net

    def _build(self, n_outputs: int, pooling: str | None, seed: int) -> None:
        """Load tokenizer and encoder, put a new head on them, and let go of the last fit."""
        tokenizer = backbones.load_tokenizer(self.backbone)
        with seeded(seed, resolve_device(self.device)):
            encoder = backbones.load_encoder(self.backbone)
            backbones.check_max_length(self.max_length, encoder, tokenizer, self.backbone)
            module = self._assemble(encoder, n_outputs, pooling)
        freeze(module, self.frozen)
        for name in ("net_", "history_", "n_iter_"):
            self.__dict__.pop(name, None)
        self.tokenizer_, self._module = tokenizer, module

    def _adapt(self) -> None:
        """Give the module of a warm start what was set since."""
        freeze(self._module, self.frozen)
        self._module.dropout.p = self.dropout
        if self._module.pooling is not None:
            self._module.pooling = getattr(self, "pooling", None)

    def _vectors(self, dataset: EncodedDataset) -> list[np.ndarray]:
        """What a head sees of each window, after `_build`, of the untrained encoder."""
        self._module.head = torch.nn.Identity()  # type: ignore[assignment]
        net = self._make_net(torch.nn.Identity(), 0)
        net.initialize()
        return list(net.logits(dataset))

    def _assemble(self, encoder: Any, n_outputs: int, pooling: str | None) -> EncoderWithHead:
        return EncoderWithHead(
            encoder,
            n_outputs,
            dropout=self.dropout,
            pooling=pooling,
            cls_last=encoder.config.model_type == "xlnet",
        )

    def _max_length(self) -> int:
        return backbones.input_length(self.max_length, self._module.encoder, self.tokenizer_)

    def _make_padder(self) -> Padder:
        return Padder.of(self.tokenizer_)

    def _make_net(self, criterion: Any, seed: int) -> FineTuningNet:
        settings: dict[str, Any] = dict(
            criterion=criterion,
            padder=self._make_padder(),
            gradient_accumulation=self.gradient_accumulation,
            max_grad_norm=self.max_grad_norm,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            warmup=self.warmup,
            precision=self.precision,
            shuffle_seed=seed,
            max_epochs=self.max_epochs,
            lr=self.lr,
            batch_size=self.batch_size,
            device=resolve_device(self.device),
            train_split=None,
            callbacks=clone(self.callbacks, safe=False) if self.callbacks else None,
            verbose=int(self.verbose),
        )
        return FineTuningNet(self._module, **{**settings, **(self.net_params or {})})

    def _train(
        self,
        dataset: EncodedDataset,
        class_counts: np.ndarray,
        background: int | None,
        seed: int,
        *,
        multilabel: bool = False,
        validation_score: Callable[[], float] | None = None,
        rows_of_epoch: Callable[[int], np.ndarray] | None = None,
        epochs: int | None = None,
    ) -> None:
        """Train `self._module` on `dataset`; also after an interrupt the estimator is usable."""
        seen = np.append(class_counts, dataset.shares.sum() if multilabel else class_counts.sum())
        goes_on = epochs is not None and hasattr(self, "net_")
        if goes_on and self._seen is not None:
            seen = seen + self._seen
        self._seen = seen
        criterion = clone(resolve_loss(self.loss)).prepare(
            seen[:-1], background=background, multilabel=multilabel, n_samples=seen[-1]
        )
        if goes_on:
            criterion.take_memory(self.net_.criterion_)
        self._train_with(
            criterion,
            dataset,
            seed,
            validation_score=validation_score,
            rows_of_epoch=rows_of_epoch,
            epochs=epochs,
        )

    def _train_with(
        self,
        criterion: Any,
        dataset: EncodedDataset,
        seed: int,
        *,
        validation_score: Callable[[], float] | None = None,
        rows_of_epoch: Callable[[int], np.ndarray] | None = None,
        epochs: int | None = None,
    ) -> None:
        """Train with a prepared criterion."""
        goes_on = epochs is not None and hasattr(self, "net_")
        if goes_on:
            net = self.net_
            net.criterion_ = criterion.to(net.device)
            own = self.net_params or {}
            net.set_rate(own.get("optimizer__lr", own.get("lr", self.lr)))
        else:
            if self._continues:
                self._adapt()
            net = self._make_net(criterion, seed)
            history = self.net_.history if self._continues else None
            with seeded(seed, net.device):
                net.initialize()
            if history is not None:
                net.history = history
        if epochs is not None:
            # How many calls will follow is unknown, so the rate stays where the user put it.
            net.schedule, net.warmup = "constant", 0.0
        self.net_ = net
        if validation_score is not None:
            net.validation_score = lambda _: validation_score()
            net.patience = self.n_iter_no_change if self.early_stopping else None
        net.rows_of_epoch = rows_of_epoch
        # Not with partial_fit, whose calls are many and short.
        spread = net.spread(dataset) if epochs is None else 0.0
        try:
            with seeded(seed + len(net.history), net.device):
                net.partial_fit(dataset, epochs=epochs)
        finally:
            # Closures over the data, which must not be pickled.
            net.validation_score = net.rows_of_epoch = None
            self._note_history()
        if spread > 0 and not net.spread(dataset) > ALIKE * spread:
            warnings.warn(
                f"the fitted model says the same of every example. With lr={self.lr} the encoder "
                f"has lost what it knew: try lr={self.lr / 10:.1g}, or warmup above {self.warmup}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _note_history(self) -> None:
        self.history_ = [
            {key: value for key, value in epoch.items() if key != "batches"}
            for epoch in self.net_.history
            if "train_loss" in epoch  # an interrupted epoch has none
        ]
        self.n_iter_ = len(self.history_)

    _continues = False
    # Examples of each class, and in all, since the last fit: calls of partial_fit add to them.
    _seen: Any = None

    # ---- probabilities

    def _log_probabilities(self, logits: np.ndarray) -> np.ndarray:
        return log_softmax(logits.astype(np.float64), axis=-1)

    @staticmethod
    def _sigmoid(logits: np.ndarray) -> np.ndarray:
        return expit(logits.astype(np.float64))

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    # ---- files

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write the fitted estimator as safetensors and JSON.

        The folder is also one of transformers: ``AutoModel.from_pretrained(folder)`` and
        ``backbone=folder`` read the fine-tuned encoder in it, without the head. `callbacks`,
        `net_params`, `sampler` and a `random_state` that is no int are not written.

        Parameters
        ----------
        folder : str or Path
            Made if missing. It gets ``skdice.json``, ``model.safetensors``, the encoder's
            ``config.json`` and the tokenizer's files; each file replaces its old version only
            when it is complete.

        Warns
        -----
        UserWarning
            If one of the parameters that are not written is set.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the loss is not one of skdice's own (pickle the estimator instead).
        """
        from skdice.estimators._storage import save

        self._check_fitted()
        return save(self, Path(folder))

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Read an estimator that `save_pretrained` wrote; nothing in the files is executed.

        It predicts as before, and can be trained on, with `callbacks`, `net_params` and `sampler`
        None. ``history_`` holds what JSON can hold of it.

        Parameters
        ----------
        folder : str or Path
        device : str, default="auto"
            Where to predict.

        Raises
        ------
        ValueError
            If the folder holds no estimator of this class.
        """
        from skdice.estimators._storage import load

        return load(cls, Path(folder), device)


def split_indices(
    n_rows: int, fraction: float, seed: int, strata: Any = None, keys: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Train and validation indices, stratified where every stratum has two rows or more.

    Rows with equal `keys` stay on one side, and validation holds one of them only: a sampler in
    front of the estimator repeats rows, and what was trained on must not be validated on.
    """
    from sklearn.model_selection import train_test_split

    where = np.arange(n_rows)
    group = where
    if keys is not None:
        numbers: dict[Any, int] = {}
        group = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    firsts = np.unique(group, return_index=True)[1]
    n = len(firsts)
    if n < 2:
        raise ValueError(
            f"validation_fraction={fraction} of {n} distinct rows leaves nothing to train on: "
            "give X_val and y_val, or early_stopping=False"
        )
    size = min(max(1, round(n * fraction)), n - 1)
    if strata is not None:
        strata = np.asarray(strata)[firsts]
        _, counts = np.unique(strata, return_counts=True)
        if counts.min() < 2 or size < len(counts) or n - size < len(counts):
            warnings.warn(
                "the validation split is not stratified, as some class has too few examples: "
                "give X_val and y_val to choose it yourself",
                stacklevel=3,
            )
            strata = None
    held = train_test_split(firsts, test_size=size, random_state=seed % 2**32, stratify=strata)[1]
    return where[~np.isin(group, group[held])], held
