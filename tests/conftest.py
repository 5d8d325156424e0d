"""Fixtures: tiny random backbones built in the test session; nothing is downloaded."""

from __future__ import annotations

import os
import string
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tiny models gain nothing from threads, which on a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

WORDS = [
    "the",
    "a",
    "in",
    "at",
    "on",
    "to",
    "of",
    "and",
    "is",
    "was",
    "met",
    "saw",
    "went",
    "lives",
    "works",
    "near",
    "with",
    "rain",
    "sun",
    "old",
    "new",
    "bus",
    "anna",
    "bob",
    "carla",
    "dan",
    "paris",
    "rome",
    "oslo",
    "acme",
    "globex",
    "good",
    "bad",
    "win",
    "money",
    "free",
    "prize",
    "call",
    "now",
    "hello",
    "meeting",
    "lunch",
    "today",
    "river",
    "bank",
    "report",
    "market",
    "road",
    "school",
    "team",
]


def build_tiny_backbone(
    folder: str, kind: str = "bert", words: Sequence[str] = WORDS, **config: object
) -> str:
    """Write a random encoder and its tokenizer of `kind` to `folder`."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = list(string.ascii_lowercase + string.digits + ".,!?'-")
    vocabulary = special + list(words) + letters + ["##" + c for c in letters]
    index = {w: i for i, w in enumerate(dict.fromkeys(vocabulary))}
    tokenizer = Tokenizer(models.WordPiece(index, unk_token="[UNK]"))
    from tokenizers import normalizers

    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    left = kind == "xlnet"  # XLNet pads on the left and closes with <sep> <cls>
    single = "$A:0 [SEP]:0 [CLS]:2" if left else "[CLS]:0 $A:0 [SEP]:0"
    pair = "$A:0 [SEP]:0 $B:1 [SEP]:1 [CLS]:2" if left else "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        "roberta": ["input_ids", "attention_mask"],
        "modernbert": ["input_ids", "attention_mask"],
        "distilbert": ["input_ids", "attention_mask"],
        "camembert": ["input_ids", "attention_mask"],
        "xlm-roberta": ["input_ids", "attention_mask"],
    }
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        padding_side="left" if left else "right",
        pad_token_type_id=3 if left else 0,
        model_input_names=names.get(kind, ["input_ids", "token_type_ids", "attention_mask"]),
    )
    sizes: dict[str, dict[str, object]] = {
        "bert": dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        ),
        "roberta": dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=66,
            pad_token_id=0,
            type_vocab_size=1,
        ),
        "deberta-v2": dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
            type_vocab_size=0,
        ),
        "modernbert": dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            cls_token_id=2,
            sep_token_id=3,
        ),
        "xlnet": dict(d_model=16, n_layer=2, n_head=2, d_inner=32),
        "distilbert": dict(
            dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=64
        ),
        "electra": dict(
            embedding_size=8,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        ),
    }
    sizes["camembert"] = sizes["xlm-roberta"] = sizes["roberta"]
    settings = {"vocab_size": len(index), **sizes[kind], **config}
    encoder_config = transformers.AutoConfig.for_model(kind, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = transformers.AutoModel.from_config(encoder_config)
    fast.save_pretrained(folder)
    encoder.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def build_backbone() -> Callable[..., str]:
    """The function that writes a random backbone, for settings of a test's own."""
    return build_tiny_backbone


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a random two-layer BERT (hidden size 16, 64 positions)."""
    return build_tiny_backbone(str(tmp_path_factory.mktemp("tiny-bert")))


@pytest.fixture(scope="session")
def tiny_backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One random backbone of each family that the estimators support."""
    return {
        kind: build_tiny_backbone(str(tmp_path_factory.mktemp(kind)), kind)
        for kind in (
            *("bert", "roberta", "deberta-v2", "modernbert", "xlnet"),
            *("distilbert", "electra"),
        )
    }


@pytest.fixture(scope="session")
def chinese_backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random BERT whose tokenizer knows some Chinese characters."""
    folder = str(tmp_path_factory.mktemp("tiny-bert-zh"))
    return build_tiny_backbone(folder, words=sorted("北京大学上海在哪里，。"))


@pytest.fixture
def sentences() -> tuple[list[list[str]], list[list[str]]]:
    """Sixteen short tagged sentences (IOB2) of unequal length."""
    rows = [
        ("anna|B-PER went to paris|B-LOC .", 1),
        ("the bus was old", 1),
        ("bob|B-PER dan|I-PER works at acme|B-ORG", 1),
        ("rain today", 1),
        ("carla|B-PER met bob|B-PER near the river", 1),
        ("the market in oslo|B-LOC is new .", 1),
        ("a good lunch", 1),
        ("globex|B-ORG saw the report", 1),
    ]
    X, y = [], []
    for _ in range(2):
        for text, _count in rows:
            pieces = [w.split("|") for w in text.split()]
            X.append([p[0] for p in pieces])
            y.append([p[1] if len(p) > 1 else "O" for p in pieces])
    return X, y


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """pyplot keeps every figure until it is told otherwise, and warns at the twentieth."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
