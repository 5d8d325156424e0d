"""An encoder with a head, that of its architecture or a linear one, and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

import torch
from torch import nn

from skdice._types import Encoder
from skdice.backbones import embedding_modules, encoder_layers, shared_by_layers
from skdice.engine.layouts.architectures import architecture_of, mask_no_embeddings
from skdice.engine.layouts.layout import PADDED, Layout, nothing_further
from skdice.engine.parts import Float32Linear

MOST_BIAS = 13.8  # that of a class with one example in a million


class EncoderModule(nn.Module):
    """An `encoder` and what is put on it; parts that are frozen stay in evaluation mode.

    Parameters
    ----------
    encoder : transformers.PreTrainedModel
    dropout : float
        Before the layer that makes the logits.
    """

    pooling: str | None = None
    # What the head reads beside: see `Layout`.
    further_inputs: Callable[..., dict[str, Any]] = staticmethod(nothing_further)

    def __init__(self, encoder: Encoder, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        mask_no_embeddings(encoder)
        self.frozen: list[str] = []
        self.adapted: tuple[Any, ...] = ()  # peft's view of a model with an adapter
        self.checkpointed = False  # whether it keeps only the inputs of its layers
        self.trainable: set[str] | None = None  # with an adapter, the names of what is trained
        # Parameters of the estimator that it was built by: a checksum, and how a message shows it.
        self.made_of: dict[str, tuple[str, str]] = {}

    def train(self, mode: bool = True) -> Self:
        """Frozen parts stay in evaluation mode: dropout there would only be noise."""
        super().train(mode)
        for name in self.frozen:
            self.get_submodule(name).eval()
        return self

    @property
    def model(self) -> Any:
        """The model of transformers that holds the weights of the encoder: here the encoder."""
        return self.encoder

    @property
    def output_layer(self) -> nn.Linear:
        """The layer that makes the logits."""
        raise NotImplementedError

    @torch.no_grad()
    def start_from(self, bias: torch.Tensor | None) -> None:
        """Let the layer that makes the logits begin with this bias, if it has one."""
        layer = self.output_layer
        if bias is not None and layer.bias is not None:
            layer.bias.copy_(finite_bias(bias))

    def set_dropout(self, p: float) -> None:
        """Train on with another dropout."""
        self.dropout.p = p


class EncoderWithHead(EncoderModule):
    """`encoder` -> dropout -> a linear head of skdice's own.

    Parameters
    ----------
    encoder : transformers.PreTrainedModel
    n_outputs : int
        Logits for each prediction.
    dropout : float
        Dropout before the head.
    pooling : {"cls", "mean", "max"} or None
        How a text becomes one vector; None predicts at `positions` instead.
    """

    def __init__(
        self,
        encoder: Encoder,
        n_outputs: int,
        dropout: float = 0.1,
        pooling: str | None = None,
    ) -> None:
        super().__init__(encoder, dropout)
        check_pooling(encoder, pooling)
        self.head: Float32Linear = Float32Linear(encoder.config.hidden_size, n_outputs)
        _start_small(self.head)
        self.pooling = pooling

    @property
    def output_layer(self) -> nn.Linear:
        """The layer that makes the logits."""
        return self.head

    def forward(
        self, positions: torch.Tensor | None = None, layout: Layout = PADDED, **inputs: Any
    ) -> torch.Tensor:
        """Logits of shape (n_positions, n_outputs), or (n_texts, n_outputs) when pooling."""
        if self.pooling is not None:
            vectors = layout.texts(self.encoder, self.pooling, inputs)
        else:
            assert positions is not None
            vectors = layout.states_at(self.encoder, positions, inputs)
        return self.head(self.dropout(vectors))

    def all_logits(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Logits of shape (n_texts, length, n_outputs)."""
        return self.head(self.encoder(**inputs).last_hidden_state)


class TaskModel(EncoderModule):
    """A model of transformers with its architecture's own head: `BertForTokenClassification`...

    `head` is the whole model and `encoder` its base, so that the names of parameters begin with
    ``encoder`` or with ``head`` whatever the architecture.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        For token classification, sequence classification or question answering.
    kind : str
        The head, as ``"TokenClassification"``. That of ``"SequenceClassification"`` reads whole
        texts, and all others read positions.
    dropout : float
        Before the layer that makes the logits.
    """

    def __init__(self, model: Encoder, kind: str, dropout: float) -> None:
        super().__init__(cast(Encoder, model.base_model), dropout)
        self.head = model
        self.kind = kind
        self.of_texts: bool = kind == "SequenceClassification"
        self.steps: tuple[str, ...] = () if self.of_texts else self._find_steps()
        self.summaries: _Summaries = _Summaries()
        if self.of_texts:
            model.base_model.register_forward_hook(self.summaries.alone, with_kwargs=True)
        if type(self.output_layer) is nn.Linear:
            self.output_layer.__class__ = Float32Linear
        self.set_dropout(dropout)

    @property
    def model(self) -> Any:
        """The model of transformers that holds all weights."""
        return self.head

    def set_dropout(self, p: float) -> None:
        """Train on with another dropout; whole texts pass through the architecture's own."""
        super().set_dropout(p)
        for part in self._around_encoder(nn.Dropout):
            part.p = p

    @property
    def output_layer(self) -> nn.Linear:
        """The layer that makes the logits."""
        return self._around_encoder(nn.Linear)[-1]

    def _around_encoder(self, kind: type) -> list[Any]:
        """Parts of a kind that belong to the head and not to the encoder."""
        inner = set(self.encoder.modules())
        return [m for m in self.head.modules() if isinstance(m, kind) and m not in inner]

    def reset_output_layer(self) -> None:
        """Start the layer that makes the logits anew, whatever was loaded."""
        layer = self.output_layer
        # A new layer draws as many numbers as one that skdice makes itself.
        new = nn.Linear(layer.in_features, layer.out_features)
        _start_small(new)
        with torch.no_grad():
            layer.weight.copy_(new.weight)
            if layer.bias is not None:
                layer.bias.zero_()

    def forward(
        self, positions: torch.Tensor | None = None, layout: Layout = PADDED, **inputs: Any
    ) -> torch.Tensor:
        """Logits of shape (n_positions, n_outputs); without `positions` (n_texts, n_outputs)."""
        if positions is None:
            self.summaries.given = layout, inputs
            return self.head(**layout.for_encoder(self.encoder, inputs)).logits
        if not self.steps:
            given = layout.for_encoder(self.encoder, inputs)
            return self.all_logits(given).flatten(0, 1).index_select(0, positions)
        vectors = layout.states_at(self.encoder, positions, inputs)
        *before, last = self.steps
        for name in before:
            vectors = getattr(self.head, name)(vectors)
        return getattr(self.head, last)(self.dropout(vectors))

    def all_logits(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Logits of shape (n_texts, length, n_outputs)."""
        out = self.head(**inputs)
        if "start_logits" in out:
            return torch.stack([out.start_logits, out.end_logits], dim=-1)
        return out.logits

    def _find_steps(self) -> tuple[str, ...]:
        """The parts of the head, which follow each other on every position; () if not known.

        The head is then run where something is predicted, and not on every subword.
        """
        if architecture_of(self.encoder).mask is None:
            return ()
        return tuple(
            name
            for name, part in self.head.named_children()
            if part is not self.encoder and not isinstance(part, nn.Dropout)
        )


class _Summaries:
    """A hook: where texts share a row, a head for texts sees each one's own vector alone."""

    given: tuple[Layout, dict[str, Any]] | None = None  # what the encoder is about to read

    def alone(self, encoder: Any, args: Any, kwargs: dict[str, Any], output: Any) -> Any:
        given, self.given = self.given, None
        vectors = None if given is None else given[0].summaries(output.last_hidden_state, given[1])
        if vectors is not None:
            output.last_hidden_state = vectors
            if output.get("pooler_output") is not None:
                output.pooler_output = encoder.pooler(vectors)
        return output


def check_pooling(encoder: Encoder, pooling: str | None) -> None:
    """Refuse the first subword of a decoder, which sees nothing behind it."""
    if pooling != "cls" or not getattr(encoder.config, "is_causal", True):
        return
    if any(getattr(part, "is_causal", False) for part in encoder.modules()):
        raise ValueError(
            "pooling='cls' reads the first subword of a text, and a decoder such as this backbone "
            "sees nothing behind it: give pooling='mean'"
        )


def finite_bias(bias: torch.Tensor) -> torch.Tensor:
    """The first bias of a head: a class that the loss does not count has minus infinity."""
    return bias.nan_to_num(0.0).clamp(-MOST_BIAS, MOST_BIAS)


def _start_small(layer: nn.Linear) -> None:
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)


def checkpoint_gradients(module: EncoderModule, wanted: bool) -> None:
    """Keep only each layer's input for the backward pass, and compute the rest again; or all."""
    encoder, module.checkpointed = module.encoder, wanted
    # Transformers is renaming these methods.
    kind = "activation" if hasattr(encoder, "activation_checkpointing_enable") else "gradient"
    if wanted:
        getattr(encoder, f"{kind}_checkpointing_enable")({"use_reentrant": False})
    elif getattr(encoder, f"is_{kind}_checkpointing"):
        getattr(encoder, f"{kind}_checkpointing_disable")()


def freeze(module: EncoderModule, frozen: str | int | None) -> None:
    """Switch off gradients of the embeddings, of the lowest layers, or of the whole encoder.

    All others are switched on, but for weights that have an adapter.

    Parameters
    ----------
    module : EncoderModule
    frozen : int, "embeddings", "encoder" or None
        An int freezes the embeddings, that many of the lowest layers, and what these share with
        the others.

    Raises
    ------
    ValueError
        If the encoder has fewer layers than asked for, or none that can be told apart.
    """
    module.frozen = []
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(module.trainable is None or name in module.trainable)
    if frozen is None:
        return
    parts: list[nn.Module]
    if frozen == "encoder":
        parts = [module.encoder]
    else:
        parts = embedding_modules(module.encoder)
        if count := 0 if frozen == "embeddings" else int(frozen):
            layers = encoder_layers(module.encoder)
            if count > len(layers):
                raise ValueError(
                    f"frozen={frozen} asks for more layers than the backbone's {len(layers)}: use "
                    "a smaller number, or frozen='encoder'"
                )
            parts += [*layers[:count], *shared_by_layers(module.encoder)]
    wanted = {id(part) for part in parts}
    module.frozen = [name for name, part in module.named_modules() if id(part) in wanted]
    for part in parts:
        part.requires_grad_(False)


def trained_state(module: nn.Module) -> dict[str, torch.Tensor]:
    """Weights that are trained, and buffers, each once; not copies."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    return {**{n: p.detach() for n, p in trained.items()}, **dict(module.named_buffers())}


@torch.no_grad()
def put_back(module: nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Give a module the values of an earlier `trained_state`."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, value in state.items():
        own[name].copy_(value)


def split_by_decay(groups: list[dict[str, Any]], weight_decay: float) -> list[dict[str, Any]]:
    """Groups of an optimiser, in which biases and normalisation weights are not decayed.

    A group with a decay of its own stays as it is.
    """
    if not weight_decay:
        return [{"weight_decay": 0.0} | group for group in groups]
    split = []
    for group in groups:
        if "weight_decay" in group:
            split.append(group)
            continue
        # Vectors are biases and normalisation weights, whatever an architecture calls them.
        decayed = [p for p in group["params"] if p.ndim >= 2]
        spared = [p for p in group["params"] if p.ndim < 2]
        split += [
            {**group, "params": decayed, "weight_decay": weight_decay},
            {**group, "params": spared, "weight_decay": 0.0},
        ]
    return [group for group in split if group["params"]]
