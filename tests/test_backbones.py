"""Backbones by family: where they are looked for, what is frozen, how long an input may be."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, T5EncoderModel

from skdice import (
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.backbones import (
    find_backbone,
    load_encoder,
    load_tokenizer,
    load_with_head,
    max_positions,
)
from skdice.engine.module import EncoderWithHead, freeze
from skdice.engine.vectors import unfitted_copy
from skdice.exceptions import TruncationWarning
from tests.conftest import SMALL as SIZES
from tests.data import LABELS, TEXTS

SMALL = dict(SIZES, vocab_size=150, pad_token_id=1)
FAMILIES = {
    "albert": {**SMALL, "embedding_size": 8},
    "electra": {**SMALL, "embedding_size": 8},
    "gpt2": dict(n_embd=16, n_layer=2, n_head=2, n_positions=64, vocab_size=150),
    "bert": SMALL,
    "mpnet": SMALL,
    "roberta": SMALL,
    "t5": dict(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=150),
}


def encoder_of(kind):
    return AutoModel.from_config(AutoConfig.for_model(kind, **FAMILIES[kind]))


def folder_of(kind, tiny_backbone, folder):
    """A random encoder of this kind, with the tokenizer of another."""
    shutil.copytree(tiny_backbone, folder)
    encoder_of(kind).save_pretrained(folder)
    return str(folder)


# ---- where they are looked for


@pytest.mark.parametrize("name", ["./model", "../model", "~/model", "model.", "a--b", "a/b/c"])
def test_what_can_be_no_hub_id_is_refused(name):
    with pytest.raises(ValueError, match="neither a folder nor a possible hub id"):
        find_backbone(name)


@pytest.mark.parametrize("name", ["nowhere-bert", "nowhere/bert_base.v1-x"])
def test_a_hub_id_is_left_to_the_hub(name):
    assert find_backbone(name) == name


def test_an_unreachable_hub_is_asked_for_one_file(monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(AutoConfig, "from_pretrained", unreachable)
    monkeypatch.delattr(AutoTokenizer, "from_pretrained")
    with pytest.raises(ValueError, match=r"'nowhere-bert' is not a local folder.*could not be"):
        DiceSequenceClassifier(backbone="nowhere-bert").fit(TEXTS, LABELS)


@pytest.mark.parametrize("half", [False, True])
def test_encoder_decoders_are_refused(tiny_backbone, tmp_path, half):
    folder = folder_of("t5", tiny_backbone, tmp_path / "t5")
    if half:
        T5EncoderModel(AutoConfig.for_model("t5", **FAMILIES["t5"])).save_pretrained(folder)
    message = r"is (half of )?an encoder-decoder \(t5\).*choose an encoder such as BERT"
    for model in (DiceSequenceClassifier(backbone=folder), TransformerFeatures(backbone=folder)):
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(TEXTS, LABELS)
        assert ("half" in str(caught.value)) == half


# ---- what is frozen


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("albert", ["embeddings.", "encoder.embedding_hidden_mapping_in."]),
        ("electra", ["embeddings.", "embeddings_project."]),
        ("gpt2", ["wte.", "wpe."]),
        ("bert", ["embeddings."]),
    ],
)
def test_embeddings_are_all_that_comes_before_the_layers(kind, parts):
    module = EncoderWithHead(encoder_of(kind), 2)
    for frozen in ("embeddings", 0):
        freeze(module, frozen)
        found = {n for n, p in module.encoder.named_parameters() if not p.requires_grad}
        every = {n for n, _ in module.encoder.named_parameters()}
        assert found == {n for n in every if n.startswith(tuple(parts))}


def test_layers_that_share_their_weights_are_not_counted():
    module = EncoderWithHead(encoder_of("albert"), 2)
    with pytest.raises(ValueError, match="the 2 layers of AlbertModel share their weights"):
        freeze(module, 1)


# ---- how long an input may be


@pytest.mark.parametrize(("kind", "limit"), [("bert", 64), ("mpnet", 62), ("roberta", 62)])
def test_positions_that_count_from_the_padding(kind, limit, tiny_backbone):
    assert max_positions(encoder_of(kind), load_tokenizer(tiny_backbone)) == limit


def test_a_long_input_fits_mpnet(tiny_backbone, tmp_path):
    folder = folder_of("mpnet", tiny_backbone, tmp_path / "mpnet")
    X, y = [["the"] * 100, ["bob"]], [["O"] * 100, ["B-PER"]]
    tagger = DiceTokenClassifier(backbone=folder, max_epochs=1, random_state=0).fit(X, y)
    assert [len(row) for row in tagger.predict(X)] == [100, 1]


@pytest.fixture(scope="module")
def long_backbones(tiny_backbones, tmp_path_factory):
    """Encoders with 1,100 positions, and with as many as one likes."""
    folder = tmp_path_factory.mktemp("long") / "modernbert"
    shutil.copytree(tiny_backbones["modernbert"], folder)
    config = AutoConfig.from_pretrained(folder)
    config.max_position_embeddings = 1100  # rotary: no weights
    config.save_pretrained(folder)
    return {"modernbert": str(folder), "xlnet": tiny_backbones["xlnet"]}


@pytest.mark.parametrize("kind", ["modernbert", "xlnet"])
def test_512_is_the_limit_only_where_none_is_given(long_backbones, kind):
    folder = long_backbones[kind]
    texts = ["win " * 600 + word * 400 for word in ("money ", "bus ")]
    for length, same in ((None, True), (1024, False)):
        features = TransformerFeatures(backbone=folder, max_length=length, long_texts="truncate")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            a, b = features.fit_transform(texts)
        assert (a == b).all() == same
    limits = {}
    for length in (None, 1024):
        for cls in (DiceSequenceClassifier, DiceQuestionAnswerer):
            model = cls(backbone=folder, max_length=length)
            limits[cls, length] = unfitted_copy(model).max_length_
    assert list(limits.values()) == [512, 384, 1024, 1024]


def test_a_length_above_the_limit_is_refused(long_backbones):
    folder = long_backbones["modernbert"]
    message = "max_length=1101 is more than the 1100 subwords that the backbone"
    for cls in (DiceSequenceClassifier, TransformerFeatures):
        with pytest.raises(ValueError, match=message):
            cls(backbone=folder, max_length=1101).fit(TEXTS, LABELS)


def test_the_tokenizers_limit_counts_too(long_backbones, tmp_path):
    folder = shutil.copytree(long_backbones["modernbert"], tmp_path / "m")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 800
    tokenizer.save_pretrained(folder)
    assert max_positions(load_encoder(folder), load_tokenizer(folder)) == 800


@pytest.mark.parametrize("value", [False, None])
def test_outputs_are_named_whatever_the_file_says(tiny_backbone, tmp_path, value):
    folder = shutil.copytree(tiny_backbone, tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "return_dict": value}))
    ids = torch.tensor([[2, 5, 3]])
    assert load_encoder(str(folder))(ids).last_hidden_state.shape[:2] == ids.shape
    assert load_with_head(str(folder), "TokenClassification", 2)(ids).logits.shape == (1, 3, 2)


def test_ids_beyond_the_embedding_are_refused(tiny_backbone, tmp_path):
    folder = shutil.copytree(tiny_backbone, tmp_path / "m")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["anna"] = 9999
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match=r"id 9999 \('anna'\), and embeddings of \d+ ids"):
        load_tokenizer(str(folder))
