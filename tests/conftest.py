"""Fixtures: tiny random backbones built in the test session; nothing is downloaded."""

from __future__ import annotations

import os
import string
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import settings

from tests.data import tagged_sentences

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
# Tiny models gain nothing from threads, which on a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A test that needs more draws says so.
settings.register_profile("few", max_examples=40, deadline=None)
settings.load_profile("few")

WORDS = (  # noqa: SIM905
    "the a in at on to of and is was met saw went lives works near with rain sun old new bus "
    "anna bob carla dan paris rome oslo acme globex good bad win money free prize call now "
    "hello meeting lunch today river bank report market road school team"
).split()


# The sizes of most kinds of encoders, by the names that these share.
SMALL: dict[str, object] = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=64,
)


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
    names = ["input_ids", "attention_mask"]
    if kind not in ("roberta", "modernbert", "distilbert", "camembert", "xlm-roberta"):
        names.insert(1, "token_type_ids")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        padding_side="left" if left else "right",
        pad_token_type_id=3 if left else 0,
        model_input_names=names,
    )
    sizes: dict[str, dict[str, object]] = {
        "bert": SMALL,
        "roberta": dict(SMALL, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1),
        "deberta-v2": dict(
            SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0
        ),
        "modernbert": dict(
            SMALL, pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3
        ),
        "xlnet": dict(d_model=16, n_layer=2, n_head=2, d_inner=32),
        "distilbert": dict(
            dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=64
        ),
        "electra": dict(SMALL, embedding_size=8),
    }
    sizes["camembert"] = sizes["xlm-roberta"] = sizes["roberta"]
    sizes["deberta"] = sizes["deberta-v2"]
    sizes["albert"] = sizes["electra"]
    sizes["mpnet"] = dict(SMALL, pad_token_id=1)
    sizes["gpt2"] = dict(n_embd=16, n_layer=2, n_head=2, n_positions=64)
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
    """A folder with a random one-layer BERT (hidden size 16, 64 positions)."""
    return build_tiny_backbone(str(tmp_path_factory.mktemp("tiny-bert")), num_hidden_layers=1)


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
def calm_backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random BERT of two layers without dropout: the same updates give the same weights."""
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return build_tiny_backbone(str(tmp_path_factory.mktemp("calm-bert")), **without)


@pytest.fixture(scope="session")
def chinese_backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random BERT whose tokenizer knows some Chinese characters."""
    folder = str(tmp_path_factory.mktemp("tiny-bert-zh"))
    return build_tiny_backbone(folder, words=sorted("北京大学上海在哪里，。"))


RAW_TEXTS = (
    "Anna Lee lives in Paris, near the river (with Bob). She's old; it's new! @bob #acme U.S. 3.5%",
    "Don't call acme-globex: the prize was 100 in Oslo/Rome... hello, hello and WIN money_now?",
    "\u6771\u4eac\u306b\u3044\u308b Bob \U0001f389 caf\u00e9 Zo\u00eb \u2026 rain \u2014 sun x y z",
)


@pytest.fixture(scope="session")
def raw_text_backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One random backbone with each kind of tokenizer: WordPiece, byte-level BPE, Unigram."""
    import json

    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    options = {"special_tokens": special, "show_progress": False}
    bpe, unigram = Tokenizer(models.BPE()), Tokenizer(models.Unigram())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        RAW_TEXTS, trainers.BpeTrainer(vocab_size=330, initial_alphabet=letters, **options)
    )
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(
        RAW_TEXTS, trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", **options)
    )
    of_bpe, of_unigram = (json.loads(t.to_str())["model"] for t in (bpe, unigram))
    merges = [tuple(pair) for pair in of_bpe["merges"]]
    vocabulary = [tuple(entry) for entry in of_unigram["vocab"]]
    tokenizers = {
        "roberta": transformers.RobertaTokenizer(vocab=of_bpe["vocab"], merges=merges),
        "xlm-roberta": transformers.XLMRobertaTokenizer(vocab=vocabulary),
    }
    found = {"bert": build_tiny_backbone(str(tmp_path_factory.mktemp("raw-bert")))}
    for kind, tokenizer in tokenizers.items():
        found[kind] = str(tmp_path_factory.mktemp(f"raw-{kind}"))
        config = transformers.AutoConfig.for_model(
            kind,
            vocab_size=len(tokenizer),
            type_vocab_size=1,
            pad_token_id=tokenizer.pad_token_id,
            **dict(SMALL, max_position_embeddings=130),
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            transformers.AutoModel.from_config(config).save_pretrained(found[kind])
        tokenizer.save_pretrained(found[kind])
    return found


@pytest.fixture
def sentences() -> tuple[list[list[str]], list[list[str]]]:
    """Sixteen short tagged sentences (IOB2) of unequal length."""
    return tagged_sentences()


class FakeGPU(list):
    """Stands for a GPU while `on`; holds the shapes of the inputs of each graph."""

    on = True

    def record(self, function, inputs, pool, stream):
        """Replay by calling the function on the inputs that stay."""
        self.append({name: tuple(values.shape) for name, values in inputs.items()})
        return lambda: function(inputs)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGPU:
    """Let the CPU be given what a GPU is given; it notes what is recorded."""
    from skdice.engine import devices, graphs

    fake = FakeGPU()
    monkeypatch.setattr(devices, "is_gpu", lambda device: fake.on)
    monkeypatch.setattr("skdice.losses.inputs.on_cpu", lambda values: False)
    monkeypatch.setattr(graphs, "record", fake.record)
    return fake


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the number of GPUs that torch is said to see."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    return lambda n: monkeypatch.setattr(torch.cuda, "device_count", lambda: n)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets libraries be missing."""

    def hide(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.fixture
def set_recipe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets numbers of the recipe, so that fits by it are short."""
    from skdice.engine import recipe

    def change(**numbers: float) -> None:
        for name, number in numbers.items():
            monkeypatch.setattr(recipe, name, number)

    return change


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets both streams, which a test cannot see before it begins, say that they are a terminal."""

    def begin() -> None:
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)

    return begin


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """pyplot keeps every figure until it is told otherwise, and warns at the twentieth."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
