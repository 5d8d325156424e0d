"""Folders that estimators are saved to: read by transformers, read back, refused when damaged."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    pipeline,
)

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit_plan import encode
from skdice.estimators.card import model_card
from skdice.exceptions import TruncationWarning
from skdice.losses import CompoundLoss, CrossEntropyLoss
from skdice.metrics.calibration import log_odds
from skdice.tags.schemes import SCHEMES, to_tags
from tests.data import LABELS, SENTENCES, TAGS, TEXTS
from tests.estimators import readers
from tests.fake_hub import fake_hub, use_hub

KINDS = ["bert", "roberta", "distilbert", "deberta-v2", "electra", "modernbert", "xlnet"]
SETTINGS = dict(max_epochs=1, lr=1e-2, batch_size=4, random_state=0)


def tagger(backbone, sentences, **params):
    return DiceTokenClassifier(backbone=backbone, **{**SETTINGS, **params}).fit(*sentences)


def classifier(backbone, y=LABELS, **params):
    settings = {**SETTINGS, "pooling": "native", **params}
    return DiceSequenceClassifier(backbone=backbone, **settings).fit(TEXTS, y)


def reader(backbone, **params):
    settings = {**SETTINGS, **params}
    return DiceQuestionAnswerer(backbone=backbone, **settings).fit(readers.X, readers.Y)


def read_whole(auto, folder):
    """A model of transformers that found all weights it has and no others."""
    model, report = auto.from_pretrained(folder, output_loading_info=True)
    assert not any(report[f"{what}_keys"] for what in ("missing", "unexpected", "mismatched"))
    return model.eval()


@torch.no_grad()
def outputs(model, window):
    inputs = {"input_ids": window.input_ids, "attention_mask": [1] * len(window)}
    if window.token_type_ids is not None:
        inputs["token_type_ids"] = window.token_type_ids
    return model(**{k: torch.tensor(np.asarray(v))[None] for k, v in inputs.items()})


def files_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def save_plain(model, backbone, folder):
    """A folder of transformers, with the tokenizer of the backbone."""
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{backbone}/{name}", folder)


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def sign(folder):
    """Make the checksums of an altered folder true, as somebody who means harm would."""
    path = folder / "skdice.json"
    state = json.loads(path.read_text())
    del state["checksum"]
    for name in state["files"]:
        if (folder / name).is_file():
            state["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    text = json.dumps(state, sort_keys=True)
    path.write_text(json.dumps({**state, "checksum": hashlib.sha256(text.encode()).hexdigest()}))


# ---- read by transformers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [tagger, classifier, reader])
def test_a_saved_estimator_is_a_model_of_transformers(
    tiny_backbones, kind, make, sentences, tmp_path
):
    model = make(tiny_backbones[kind], *([sentences] if make is tagger else []))
    X = {tagger: sentences[0], classifier: TEXTS, reader: readers.X}[make]
    folder = model.save_pretrained(tmp_path / "m")
    plain = read_whole(getattr(transformers, f"AutoModelFor{model.task.head}"), folder)
    assert plain.config.architectures == [type(plain).__name__]
    windows = model.task.encode(model, X)
    for window, logits in zip(windows, model.net_.logits(EncodedDataset(windows)), strict=True):
        found = outputs(plain, window)
        if make is reader:
            found = torch.stack([found.start_logits[0], found.end_logits[0]], -1)
        else:
            found = found.logits[0]
        places = ... if make is classifier else window.positions
        np.testing.assert_allclose(found[places], logits, atol=1e-5)
    settings = {}
    if make is reader:
        settings = {"null_threshold": model.null_threshold_}
    else:
        names = model.classes_.tolist()
        assert plain.config.id2label == dict(enumerate(names))
        assert plain.config.label2id == {name: i for i, name in enumerate(names)}
    back = type(model).from_transformers(folder, **settings)
    assert back.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "spans"])
def test_transformers_refuses_other_heads(tiny_backbone, pooling, tmp_path):
    if pooling == "spans":
        model = readers.tagger(tiny_backbone).fit(readers.SENTENCES, readers.NESTED)
        X = readers.SENTENCES
    else:
        model, X = classifier(tiny_backbone, pooling=pooling), TEXTS
    folder = model.save_pretrained(tmp_path / "m")
    for auto in (AutoModelForSequenceClassification, AutoModelForTokenClassification):
        with pytest.raises((OSError, ValueError)):
            auto.from_pretrained(folder)
    with pytest.raises((OSError, ValueError)):
        pipeline("text-classification", str(folder))
    read = type(model).from_pretrained(folder)
    assert read.predict(X).tolist() == model.predict(X).tolist()
    with pytest.raises((ValueError, TypeError), match=r"holds a BertModel|no model with the heads"):
        type(model).from_transformers(folder)


def test_a_pooled_head_that_is_read_elsewhere_sees_the_beginning_only(tiny_backbone, tmp_path):
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_length=12, **SETTINGS)
    folder = model.fit(TEXTS, LABELS).save_pretrained(tmp_path / "m")
    texts = [" ".join(TEXTS[i : i + n]) for i in range(4) for n in (1, 2, 6)]
    tokenizer = AutoTokenizer.from_pretrained(folder / "encoder")
    encoder = AutoModel.from_pretrained(folder / "encoder").eval()
    head = load_file(folder / "head.safetensors")
    weight, bias = (next(v for v in head.values() if v.ndim == n) for n in (2, 1))
    given = {"padding": True, "truncation": True, "max_length": 12, "return_tensors": "pt"}
    tokens = tokenizer(texts, **given)
    with torch.no_grad():
        states = encoder(**tokens).last_hidden_state
    inside = tokens["attention_mask"][..., None]
    mean = (states * inside).sum(1) / inside.sum(1)
    by_hand = torch.softmax(mean @ weight.T + bias, -1).numpy()
    short = np.array([len(ids) <= 12 for ids in tokenizer(texts)["input_ids"]])
    assert 0 < short.sum() < len(texts)
    read = DiceSequenceClassifier.from_pretrained(folder)
    found = read.predict_proba(texts)
    np.testing.assert_allclose(found[short], by_hand[short], atol=1e-5)
    assert np.abs(found - by_hand)[~short].max() > 1e-3
    read.set_params(long_texts="truncate")
    with pytest.warns(TruncationWarning, match="5 of 12 texts"):
        np.testing.assert_allclose(read.predict_proba(texts), by_hand, atol=1e-5)
    card = " ".join((folder / "README.md").read_text().split())
    assert "elsewhere see the first 12 subwords only" in card


def test_a_folder_holds_one_model_only(tiny_backbone, tmp_path):
    folder = tmp_path / "m"
    classifier(tiny_backbone).save_pretrained(folder)
    own = classifier(tiny_backbone, pooling="mean").save_pretrained(folder)
    with pytest.raises((OSError, ValueError)):
        AutoModelForSequenceClassification.from_pretrained(folder)
    assert DiceSequenceClassifier.from_pretrained(own).pooling == "mean"
    classifier(tiny_backbone).save_pretrained(folder)
    assert not (folder / "encoder").exists()
    assert not (folder / "head.safetensors").exists()
    read_whole(AutoModelForSequenceClassification, folder)


# ---- tuned decisions


@pytest.mark.parametrize("kind", KINDS)
def test_a_tuned_tagger_takes_its_decision_along(tiny_backbones, kind, sentences, tmp_path):
    X, y = sentences
    model = DiceTokenClassifier(backbone=tiny_backbones[kind], **SETTINGS)
    tuned = BiasTunedTagger(model, cv=2, random_state=0).fit(X, y)
    tuned.bias_, tuned.temperature_ = np.linspace(-1, 2, len(tuned.bias_)), 0.6
    before = tuned.estimator_.predict_proba(X)
    folder = tuned.save_pretrained(tmp_path / "m")
    for a, b in zip(before, tuned.estimator_.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)  # saving changes nothing here
    plain = read_whole(AutoModelForTokenClassification, folder)
    windows = encode(DiceTokenClassifier.from_pretrained(folder), X).windows
    for window, row in zip(windows, tuned.predict_proba(X), strict=True):
        logits = outputs(plain, window).logits[0, window.positions]
        np.testing.assert_allclose(torch.softmax(logits, -1), row[window.words], atol=1e-5)
    for read in (DiceTokenClassifier.from_pretrained, DiceTokenClassifier.from_transformers):
        assert read(folder).predict(X).tolist() == tuned.predict(X).tolist()


@pytest.mark.parametrize("pooling", ["native", "mean"])
def test_a_tuned_classifier_takes_its_decision_along(tiny_backbone, pooling, tmp_path):
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling=pooling, **SETTINGS)
    tuned = BiasTunedClassifier(model, cv=2, random_state=0).fit(TEXTS, LABELS)
    tuned.bias_, tuned.temperature_ = np.array([0.0, 0.7]), 1.8
    folder = tuned.save_pretrained(tmp_path / "m")
    read = DiceSequenceClassifier.from_pretrained(folder)
    np.testing.assert_allclose(read.predict_proba(TEXTS), tuned.predict_proba(TEXTS), atol=1e-6)
    assert read.predict(TEXTS).tolist() == tuned.predict(TEXTS).tolist()
    if pooling == "native":
        judge = pipeline("text-classification", str(folder), top_k=None)
        for text, row in zip(TEXTS, tuned.predict_proba(TEXTS), strict=True):
            found = {f["label"]: f["score"] for f in judge([text])[0]}
            np.testing.assert_allclose([found["ham"], found["spam"]], row, atol=1e-5)


def test_tuned_labels_are_served_by_plain_transformers(tiny_backbone, tmp_path):
    labels = np.array([[i % 2, i % 3 == 0, i % 4 == 0] for i in range(len(TEXTS))], dtype=int)
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling="native", **SETTINGS)
    tuned = BiasTunedClassifier(model, scoring="f1", cv=2, n_bootstraps=0, random_state=0)
    names = np.array(["odd", "third", "fourth"])
    tuned.fit(TEXTS, [names[row == 1].tolist() for row in labels])
    assert tuned.classes_.tolist() == ["fourth", "odd", "third"]
    tuned.bias_, tuned.temperature_ = tuned.bias_ + np.array([0.3, -0.2, 0.1]), 1.7
    folder = tuned.save_pretrained(tmp_path / "m")
    plain = read_whole(AutoModelForSequenceClassification, folder)
    assert list(plain.config.id2label.values()) == ["fourth", "odd", "third"]
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = plain.eval()(**tokens).logits
    np.testing.assert_allclose(torch.sigmoid(logits), tuned.predict_proba(TEXTS), atol=1e-5)
    np.testing.assert_array_equal((logits > 0).int(), tuned.predict(TEXTS))
    odds = log_odds(tuned.estimator_.predict_proba(TEXTS)) + tuned.bias_
    np.testing.assert_array_equal(odds > 0, tuned.predict(TEXTS))  # whatever the temperature
    read = DiceSequenceClassifier.from_pretrained(folder)
    np.testing.assert_allclose(read.predict_proba(TEXTS), tuned.predict_proba(TEXTS), atol=1e-5)


def test_a_bias_that_no_head_can_hold_is_refused(tiny_backbone, sentences, tmp_path):
    from sklearn.dummy import DummyClassifier

    dummy = BiasTunedClassifier(DummyClassifier(), cv=2).fit(np.zeros((8, 1)), [0, 1] * 4)
    with pytest.raises(TypeError, match="DummyClassifier has no save_pretrained"):
        dummy.save_pretrained(tmp_path / "m")


# ---- models of others


def test_a_model_of_others_is_scored_tuned_and_trained_on(tiny_backbone, sentences, tmp_path):
    X, y = sentences
    config = dict(num_labels=4, id2label=dict(enumerate(["O", "I-LOC", "B-PER", "B-LOC"])))
    config["label2id"] = {name: i for i, name in config["id2label"].items()}
    torch.manual_seed(0)
    plain = AutoModelForTokenClassification.from_pretrained(tiny_backbone, **config)
    save_plain(plain, tiny_backbone, tmp_path)
    model = DiceTokenClassifier.from_transformers(tmp_path, loss="dsc", lr=1e-2, random_state=0)
    assert model.classes_.tolist() == ["B-LOC", "B-PER", "I-LOC", "O"]
    assert (model.scheme_, model.n_iter_) == ("iob2", 0)
    window = encode(model, X[:1]).windows[0]
    logits = outputs(plain.eval(), window).logits[0, window.positions]
    expected = torch.softmax(logits, -1)[:, [3, 2, 1, 0]]
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], expected, atol=1e-6)
    kept = [i for i, tags in enumerate(y) if set(tags) <= set(model.classes_)]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    tuned = BiasTunedTagger(model, cv="prefit", n_bootstraps=0).fit(X, y)
    assert tuned.score(X, y) >= model.score(X, y)
    card = (tuned.save_pretrained(tmp_path / "tuned") / "README.md").read_text()
    assert "| Loss | not trained by skdice |\n| Decision | tuned for `F1" in card
    before = model.predict_proba(X[:1])[0]
    model.partial_fit(X, y)
    assert np.abs(model.predict_proba(X[:1])[0] - before).max() > 1e-3
    model.set_params(warm_start=True, max_epochs=30, dropout=0.0).fit(X, y)
    assert model.score(X, y) > 0.9
    read = DiceTokenClassifier.from_pretrained(model.save_pretrained(tmp_path / "again"))
    assert read.predict(X).tolist() == model.predict(X).tolist()


def test_generic_labels_are_kept_with_a_word(tiny_backbone, tmp_path):
    plain = AutoModelForSequenceClassification.from_pretrained(tiny_backbone, num_labels=3)
    save_plain(plain, tiny_backbone, tmp_path)
    with pytest.warns(UserWarning, match="no names for its labels"):
        model = DiceSequenceClassifier.from_transformers(tmp_path)
    assert model.classes_.tolist() == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert set(model.predict(TEXTS)) <= set(model.classes_)
    assert len(model.predict([("one", "two"), ("three", "four")])) == 2
    with pytest.raises(ValueError, match="pooling='mean' is another head"):
        DiceSequenceClassifier.from_transformers(tmp_path, pooling="mean")


# ---- what is refused


@pytest.fixture(scope="module")
def saved_tagger(tiny_backbone, tmp_path_factory):
    model = tagger(tiny_backbone, (SENTENCES, TAGS))
    return model.save_pretrained(tmp_path_factory.mktemp("saved") / "m")


@pytest.fixture
def folder(saved_tagger, tmp_path):
    """A folder of its own for each test, to be harmed."""
    return shutil.copytree(saved_tagger, tmp_path / "m")


def refused(folder, message, cls=DiceTokenClassifier):
    for read in (cls.from_pretrained, cls.from_transformers):
        with pytest.raises(ValueError, match=message):
            read(folder)


def test_another_task_is_refused(folder, tiny_backbone, tmp_path):
    with pytest.raises(ValueError, match="holds a DiceTokenClassifier, not a DiceSequence"):
        DiceSequenceClassifier.from_pretrained(folder)
    for cls in (DiceSequenceClassifier, DiceQuestionAnswerer):
        with pytest.raises(ValueError, match="holds a BertForTokenClassification, and"):
            cls.from_transformers(folder)
    with pytest.raises(ValueError, match="holds a BertModel, and tagging needs"):
        DiceTokenClassifier.from_transformers(tiny_backbone)
    with pytest.raises(TypeError, match="no model with the heads of DiceMRCTagger"):
        DiceMRCTagger.from_transformers(folder)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        *(("config.json", "num_attention_heads", 4), ("config.json", "hidden_act", "relu")),
        *(("config.json", "layer_norm_eps", 0.1), ("config.json", "is_decoder", True)),
        *(("tokenizer_config.json", "unk_token", "[MASK]"), ("skdice.json", "history", [])),
        *(("skdice.json", "checksum", None), ("skdice.json", "files", {})),
    ],
)
def test_a_changed_value_is_refused(folder, name, key, value):
    edit(folder / name, **{key: value})
    with pytest.raises(ValueError, match=rf"{name}'.*its checksum differs"):
        DiceTokenClassifier.from_pretrained(folder)


@pytest.mark.parametrize("part", ["params", "fitted"])
def test_every_value_of_the_state_is_guarded(tiny_backbone, part, tmp_path):
    model = readers.tagger(tiny_backbone).fit(readers.SENTENCES, readers.NESTED)
    path = model.save_pretrained(tmp_path / "m") / "skdice.json"
    whole = json.loads(path.read_text())
    assert {"pooling", "threshold"} <= set(whole["fitted"])
    for key, value in whole[part].items():
        other = value[::-1] if isinstance(value, list) and len(value) > 1 else [value, 1]
        path.write_text(json.dumps({**whole, part: {**whole[part], key: other}}))
        with pytest.raises(ValueError, match="its checksum differs"):
            DiceMRCTagger.from_pretrained(tmp_path / "m")
    path.write_text(json.dumps(whole, indent=7))  # the same values in another layout
    read = DiceMRCTagger.from_pretrained(tmp_path / "m")
    assert read.predict(readers.SENTENCES).tolist() == model.predict(readers.SENTENCES).tolist()


def test_notes_of_others_are_not_guarded(folder, sentences):
    before = DiceTokenClassifier.from_pretrained(folder).predict(sentences[0]).tolist()
    for name in ("README.md", ".gitattributes", "metrics.json", "requirements.txt", "handler.py"):
        (folder / name).write_text("{}")
    assert DiceTokenClassifier.from_pretrained(folder).predict(sentences[0]).tolist() == before


@pytest.mark.parametrize(
    "name",
    [
        *("added_tokens.json", "adapter_config.json", "encoder/config.json", "vocab.txt"),
        "head.safetensors",
    ],
)
def test_a_file_that_loaders_look_for_is_refused(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("{}")
    with pytest.raises(ValueError, match=f"{name}' is new: skdice.json does not speak of it"):
        DiceTokenClassifier.from_pretrained(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(folder, tiny_backbone, value, tmp_path):
    own = classifier(tiny_backbone, pooling="mean")
    own.save_pretrained(tmp_path / "own")
    cases = [
        (DiceTokenClassifier, folder, "model.safetensors", "bert.embeddings.LayerNorm.weight"),
        (DiceSequenceClassifier, tmp_path / "own", "head.safetensors", "classifier.weight"),
    ]
    for cls, where, file, name in cases:
        weights = load_file(where / file)
        name = name if name in weights else next(iter(weights))
        weights[name].view(-1)[0] = value
        save_file(weights, where / file, metadata={"format": "pt"})
        sign(where)
        with pytest.raises(ValueError, match="NaN or infinite weights"):
            cls.from_pretrained(where)
    with pytest.raises(ValueError, match="NaN or infinite weights"):
        DiceTokenClassifier.from_transformers(folder)
    with torch.no_grad():
        next(own.module_.parameters()).view(-1)[0] = value
    before = sorted((tmp_path / "own").iterdir())
    with pytest.raises(ValueError, match="the fitted model has NaN or infinite weights"):
        own.save_pretrained(tmp_path / "own")
    assert sorted((tmp_path / "own").iterdir()) == before


@pytest.mark.parametrize("n_bytes", [0, 5, 100, -1, -1000])
def test_a_truncated_file_is_refused(folder, n_bytes):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ValueError, match="checksum differs"):
        DiceTokenClassifier.from_pretrained(folder)
    with pytest.raises(ValueError, match=str(folder)):
        DiceTokenClassifier.from_transformers(folder)


@pytest.mark.parametrize("change", ["missing", "surplus", "size", "value"])
def test_other_weights_are_refused(folder, change):
    path = folder / "model.safetensors"
    weights = load_file(path)
    if change == "missing":
        del weights["classifier.bias"]
    elif change == "surplus":
        weights["classifier.more"] = torch.zeros(3)
    elif change == "size":
        weights["classifier.weight"] = weights["classifier.weight"][:-1].clone()
    else:
        weights["classifier.bias"] += 1
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="checksum differs"):
        DiceTokenClassifier.from_pretrained(folder)
    if change == "value":
        return  # a change that others may make
    with pytest.raises(ValueError, match=r"(lacks|has besides|has other sizes of) 1 tensors"):
        DiceTokenClassifier.from_transformers(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refused(folder, str(folder))


def test_a_damaged_state_is_named(folder):
    path = folder / "skdice.json"
    whole = path.read_text()
    nested = "[" * 100_000 + "]" * 100_000
    for text in ("", "[]", "7", "{}", '{"format": 4}', whole[: len(whole) // 2], nested):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"damaged|has format"):
            DiceTokenClassifier.from_pretrained(folder)
    for changes, error in (({"params": {"no_such": 1}}, "no_such"), ({"fitted": {}}, "damaged")):
        path.write_text(whole)
        edit(path, **changes)
        sign(folder)
        with pytest.raises((ValueError, TypeError), match=error):
            DiceTokenClassifier.from_pretrained(folder)


@pytest.mark.parametrize("version", [1, 3, 5, None])
def test_other_formats_are_refused(folder, version):
    edit(folder / "skdice.json", format=version)
    message = f"{folder}' has format {version}, and this skdice reads format 4: install the version"
    with pytest.raises(ValueError, match=re.escape(message)):
        DiceTokenClassifier.from_pretrained(folder)


ASKS = [
    ("config.json", {"attn_implementation": "evil/kernel"}),
    ("config.json", {"_attn_implementation": "evil/kernel"}),
    ("config.json", {"attn_implementation": {"": "evil/kernel"}}),
    ("config.json", {"attn_implementation": "evil/kernel@main:run"}),
    ("config.json", {"attn_implementation": "flash_attention_2"}),
    ("config.json", {"attn_implementation": "paged|evil/kernel"}),
    ("config.json", {"attribute_map": {"looks": "_attn_implementation"}, "looks": "evil/kernel"}),
    ("config.json", {"experts_implementation": "deepgemm"}),
    ("config.json", {"text_config": {"attn_implementation": "evil/kernel"}}),
    ("config.json", {"auto_map": {"AutoModel": "evil/repo--model.Model"}}),
    ("config.json", {"quantization_config": {"quant_method": "metal"}}),
    ("config.json", {"configuration_files": ["config.4.0.0.json"]}),
    ("config.json", {"fusion_config": {"x": True}}),
    ("config.json", {"tokenizer_class": "AutoTokenizer"}),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}),
    ("tokenizer_config.json", {"tokenizer_class": "AutoModel"}),
    ("tokenizer_config.json", {"tokenizer_class": "RagTokenizer"}),
    ("adapter_config.json", {"peft_type": "LORA", "megatron_config": {}, "megatron_core": "evil"}),
    ("adapter_config.json", {"peft_type": "XLORA", "adapters": {"a": "evil/adapter"}}),
]


def test_a_folder_asks_nothing_of_the_network_and_runs_nothing(folder, tmp_path, monkeypatch):
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.syspath_prepend(folder)
    asked = []

    def refuse(*args, **kwargs):
        asked.append(args)
        raise AssertionError("the network was asked")

    for name in ("getaddrinfo", "create_connection", "socket.connect"):
        monkeypatch.setattr(f"socket.{name}", refuse)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    reads = [
        DiceTokenClassifier.from_pretrained,
        DiceTokenClassifier.from_transformers,
        lambda folder: tagger(str(folder), ([["anna"]] * 4, [["O"], ["B-A"]] * 2)),
    ]
    for read in reads[:2]:
        assert len(read(folder).predict([["anna"]])) == 1
    for name, changes in ASKS:
        harmed = shutil.copytree(folder, tmp_path / "harmed")
        whole = (harmed / name).read_text() if (harmed / name).exists() else "{}"
        (harmed / name).write_text(json.dumps({**json.loads(whole), **changes}))
        sign(harmed)
        for read in reads:
            with pytest.raises(ValueError, match=r"of its own|speak"):
                read(harmed)
        shutil.rmtree(harmed)
    assert not asked
    assert not (tmp_path / "ran").exists()


def test_a_hubs_model_is_asked_for_its_config_first(tiny_backbone, tmp_path, monkeypatch):
    with fake_hub() as hub:
        use_hub(monkeypatch, hub, tmp_path / "cache")
        files = files_of(tiny_backbone)
        config = {**json.loads(files["config.json"]), "attn_implementation": "evil/kernel"}
        files["config.json"] = json.dumps(config).encode()
        hub.repos["ann/evil"] = {"private": False, "files": files}
        with pytest.raises(ValueError, match=r"ann/evil/config.json' asks for code of its own"):
            classifier("ann/evil")
        assert not any("evil/kernel" in path or "safetensors" in path for _, path in hub.requests)


@pytest.mark.parametrize("value", [None, "sdpa", "eager", {"": "eager"}])
def test_attention_that_torch_has_is_accepted(folder, value, sentences):
    edit(folder / "config.json", attn_implementation=value)
    sign(folder)
    assert len(DiceTokenClassifier.from_pretrained(folder).predict(sentences[0])) == 16


@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden_size", 32), ("num_hidden_layers", 3), ("vocab_size", 999), ("hidden_act", "no")],
)
def test_a_configuration_of_another_model_is_refused(folder, key, value):
    edit(folder / "config.json", **{key: value})
    sign(folder)
    refused(folder, str(folder))
    with pytest.raises(ValueError, match=str(folder)):
        DiceTokenClassifier(backbone=str(folder)).fit([["anna"]] * 4, [["O"], ["B-A"]] * 2)


def test_what_is_neither_folder_nor_hub_id_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no skdice"):
        DiceTokenClassifier.from_pretrained(tmp_path)
    for source in (tmp_path / "none", "no/such/folder", str(tmp_path / "none")):
        with pytest.raises(ValueError, match="neither a folder nor a possible hub id"):
            DiceTokenClassifier.from_pretrained(source)


# ---- the model card


def test_the_card_says_what_the_model_is(tiny_backbone, sentences, tmp_path):
    model = tagger(tiny_backbone, sentences, loss="tversky")
    card = (model.save_pretrained(tmp_path / "m", metrics={"test F1": 0.4711})) / "README.md"
    text = card.read_text()
    meta = ModelCard.load(card).data.to_dict()
    assert meta["pipeline_tag"] == "token-classification"
    assert (meta["library_name"], meta["tags"]) == ("transformers", ["skdice", "imbalanced"])
    counts = Counter(tag for row in sentences[1] for tag in row)
    for tag, n in counts.items():
        assert f"| `{tag}` | {n} |" in text
    assert "`O` is the negative class" in text
    assert "| `test F1` | 0.4711 |" in text
    assert "TverskyLoss(" in text
    assert str(tmp_path) not in text
    assert tiny_backbone not in text
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:  # what it says to do works
        exec(block.replace("FOLDER_OR_REPO_ID", str(tmp_path / "m")), {})
    own = classifier(tiny_backbone, pooling="mean").save_pretrained(tmp_path / "own")
    assert ModelCard.load(own / "README.md").data.to_dict()["library_name"] == "skdice"
    told = (
        "as DiceSequenceClassifier.from_pretrained can. It runs that of a fit with pooling='native'"
    )
    assert f"Plain transformers cannot run its head, {told}" in (own / "README.md").read_text()


def test_the_metadata_of_the_card(tiny_backbone, tmp_path):
    backbone = shutil.copytree(tiny_backbone, tmp_path / "backbone")
    (backbone / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    model = classifier(str(backbone))
    metrics = model.evaluate(TEXTS, LABELS)

    def metadata(**card):
        folder = model.save_pretrained(tmp_path / "m", metrics=metrics, card=card)
        return ModelCard.load(folder / "README.md").data

    data = metadata(language="en", datasets=["ann/texts"])
    assert (data.license, data.language, data.datasets) == ("apache-2.0", "en", ["ann/texts"])
    assert {result.metric_type: result.metric_value for result in data.eval_results} == metrics
    told = {(r.task_type, r.dataset_name) for r in data.eval_results}
    assert told == {("text-classification", "ann/texts")}
    assert metadata(license="mit").license == "mit"
    (backbone / "README.md").write_text("no metadata")
    assert metadata().license is None
    tuned = BiasTunedClassifier(model, cv="prefit").fit(TEXTS, LABELS)
    folder = tuned.save_pretrained(tmp_path / "tuned", card={"language": "de"})
    assert ModelCard.load(folder / "README.md").data.language == "de"


HOSTILE = [
    *("a`b", "a\n# Heading", "a|b", "a\\|b", "``", "`", " a ", "", "<b>bold</b>", "a\r\nb", "|"),
    *("\n\n<script>x", "a` <i>x</i>", "[x](http://e)", "![x](y)", "*x*", "_x_", "\x1b[31m", "$x$"),
    *("a\u2028# b", "\\", "a\\", "&lt;", "<!-- x", "--- | ---", "](x)", "~~x~~", "www.evil.com"),
    *("plain_name", "\ud800"),
]


def cells(text):
    """The rows of all tables of a Markdown text as readers see them; other structure is refused."""
    found, in_row = [], False
    inline = {"text", "code_inline", "html_inline", "softbreak"}
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        assert token.type != "html_block", token.content
        in_row = token.type == "tr_open" or (in_row and token.type != "tr_close")
        if token.type == "tr_open":
            found.append([])
        if token.type == "inline":
            assert {child.type for child in token.children} <= inline, token.content
            parts = [c.content for c in token.children]
            tags = {c.content for c in token.children if c.type == "html_inline"}
            assert tags <= {"<code>", "</code>"}, tags
            if in_row:
                found[-1].append("".join(part for part in parts if part not in tags))
    return found


@pytest.fixture(scope="module")
def of_hostile_names(tiny_backbone):
    """A classifier whose classes have all these names, two rows of each."""
    names = [name for name in HOSTILE for _ in range(2)]
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling="native", **SETTINGS)
    return model.fit([f"win {i}" for i in range(len(names))], names)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_leave_their_cell(of_hostile_names, name):
    card = model_card(of_hostile_names, {name: 0.5}, {})
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    rows = cells(card.partition("---\n\n")[2])
    assert [shown, "2"] in rows or [shown.strip(" "), "2"] in rows
    assert [shown, "0.5"] in rows or [shown.strip(" "), "0.5"] in rows
    plain = model_card(of_hostile_names, {"F1": 0.5}, {})
    assert len(rows) == len(cells(plain.partition("---\n\n")[2]))
    assert {len(row) for row in rows} == {2}
    headings = re.findall("^#+ .*$", card, flags=re.MULTILINE)
    assert headings == ["# DiceSequenceClassifier", "## Training data", "## Scores", "## Use"]


def test_metrics_that_are_no_numbers_are_refused(of_hostile_names, tmp_path):
    for metrics in (5, ["F1"], {"F1": "high"}, {"F1": None}, "F1"):
        with pytest.raises(TypeError, match=r"metrics=.* must (map names to numbers|be a dict)"):
            of_hostile_names.save_pretrained(tmp_path / "m", metrics=metrics)
        assert not (tmp_path / "m").exists()


# ---- the hub


def test_to_the_hub_and_back(tiny_backbone, sentences, tmp_path, monkeypatch):
    model = tagger(tiny_backbone, sentences)
    with fake_hub() as hub:
        use_hub(monkeypatch, hub, tmp_path / "cache")
        address = model.push_to_hub("ann/notes", private=True, metrics={"test F1": 0.5})
        assert "ann/notes" in address
        stored = hub.repos["ann/notes"]
        assert stored["private"] is True
        written = {"README.md", "config.json", "model.safetensors", "skdice.json"}
        assert written <= set(stored["files"])
        tagger_files = set(stored["files"])
        assert b"| `test F1` | 0.5 |" in stored["files"]["README.md"]
        expected = model.predict(sentences[0]).tolist()
        for read in (DiceTokenClassifier.from_pretrained, DiceTokenClassifier.from_transformers):
            assert read("ann/notes").predict(sentences[0]).tolist() == expected
        with pytest.raises(ValueError, match="'ann/nothing' is no folder, and could not be"):
            DiceTokenClassifier.from_pretrained("ann/nothing")
        with pytest.raises(ValueError, match="repo_id='no such' is no possible hub id"):
            model.push_to_hub("no such")
        stored["files"] |= {"head.safetensors": b"of an earlier model", "notes.txt": b"ours"}
        model.push_to_hub("ann/notes")
        assert set(stored["files"]) == tagger_files | {"notes.txt"}
        tuned = BiasTunedTagger(model, cv="prefit").fit(*sentences)
        tuned.push_to_hub("ann/tuned")
        again = DiceTokenClassifier.from_pretrained("ann/tuned")
        assert again.predict(sentences[0]).tolist() == tuned.predict(sentences[0]).tolist()


def test_a_revision_of_a_backbone_and_of_a_model(tiny_backbones, tmp_path, monkeypatch):
    old = {**files_of(tiny_backbones["bert"]), "README.md": b"---\nlicense: mit\n---\n"}
    with fake_hub() as hub:
        use_hub(monkeypatch, hub, tmp_path / "cache")
        roberta = files_of(tiny_backbones["roberta"])
        hub.repos["ann/base"] = {"private": False, "files": roberta, "tags": {"v1": old}}
        for revision in ("main", "v1"):
            huggingface_hub.snapshot_download("ann/base", revision=revision)
        model = classifier("ann/base", revision="v1")
        assert model.module_.encoder.config.model_type == "bert"
        assert classifier("ann/base").module_.encoder.config.model_type == "roberta"
        features = TransformerFeatures(backbone="ann/base", revision="v1").fit(TEXTS)
        assert features.encoder_.config.model_type == "bert"
        with pytest.raises(ValueError, match=r"'ann/base'.* could not be fetched"):
            classifier("ann/base", revision="v2")
        model.push_to_hub("ann/model")
        stored = hub.repos["ann/model"]
        card = stored["files"]["README.md"].decode()
        assert "| Backbone | ann/base at `v1` |" in card
        assert "license: mit" in card
        stored["tags"] = {"first": dict(stored["files"])}
        classifier(tiny_backbones["bert"], y=["x", "y"] * 6).push_to_hub("ann/model")
        expected = model.predict(TEXTS).tolist()
        for name, revision in (("from_pretrained", "v1"), ("from_transformers", "first")):
            read = getattr(DiceSequenceClassifier, name)
            assert read("ann/model").classes_.tolist() == ["x", "y"]
            again = read("ann/model", revision="first")
            assert again.predict(TEXTS).tolist() == expected
            assert again.revision == revision
        model.set_params(warm_start=True, revision=None)
        with pytest.raises(ValueError, match="revision=None is not what the model was fitted with"):
            model.fit(TEXTS, LABELS)
    folder = model.save_pretrained(tmp_path / "m")
    for refused in (
        lambda: DiceSequenceClassifier.from_pretrained(folder, revision="v1"),
        lambda: classifier(str(folder), revision="v1"),
    ):
        with pytest.raises(ValueError, match="revision='v1' is for a hub id"):
            refused()


# ---- schemes that a pipeline does not join


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "plain"])
def test_a_scheme_that_pipelines_do_not_join_is_named(tiny_backbone, scheme, tmp_path):
    tags = to_tags([("A", 0, 3), ("A", 3, 5), ("B", 5, 6)], 7, scheme)
    X = [["anna", "sat", "by", "bob", "at", "rome", "too"]] * 2
    model = tagger(tiny_backbone, (X, [tags] * 2))
    if scheme in ("iob1", "iob2"):
        card = (model.save_pretrained(tmp_path / "m") / "README.md").read_text()
        assert 'aggregation_strategy="first"' in card
        assert "the best tag of each word alone" in card
        return
    with pytest.warns(UserWarning, match=rf"'{scheme}'.*convert_scheme") as record:
        folder = model.save_pretrained(tmp_path / "m")
    assert [w.filename for w in record] == [__file__]
    card = (folder / "README.md").read_text()
    assert f"in the scheme '{scheme}'" in card
    assert 'aggregation_strategy="first"' not in card


def test_prefixes_alone_are_not_joined_either(tiny_backbone, tmp_path):
    model = tagger(tiny_backbone, ([["anna", "sat"]] * 2, [["B", "I"]] * 2))
    with pytest.warns(UserWarning, match="aggregation_strategy"):
        model.save_pretrained(tmp_path / "m")


@pytest.mark.parametrize("labels", [["spam", "ham"], [1, 0]])
def test_weights_by_label_are_saved(tiny_backbone, tmp_path, labels):
    texts, weights = ["win a prize", "the bus"] * 4, {labels[0]: 10.0}
    of_ce = CrossEntropyLoss(class_weight=weights)
    of_numpy = dict(zip(np.unique(labels), np.array([1, 2.0], dtype=np.float32), strict=True))
    losses = of_ce, CompoundLoss(of_ce, "dice"), CrossEntropyLoss(class_weight=of_numpy)
    for loss in losses:
        model = DiceSequenceClassifier(
            backbone=tiny_backbone, loss=loss, max_epochs=1, random_state=0
        ).fit(texts, labels * 4)
        loaded = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "m"))
        if loss is losses[-1]:
            assert loaded.loss.class_weight == {label: float(w) for label, w in of_numpy.items()}
        else:
            assert repr(loaded.loss) == repr(model.loss)
        loaded.partial_fit(texts, labels * 4)


def test_no_answer_at_all_is_saved(tiny_backbone, tmp_path):
    X, y = [("who sings?", "anna sings in paris")] * 4, [[(0, "anna")]] * 4
    for threshold in (-np.inf, np.inf, 0.5):
        model = DiceQuestionAnswerer(
            backbone=tiny_backbone, null_threshold=threshold, max_epochs=1, random_state=0
        ).fit(X, y)
        loaded = DiceQuestionAnswerer.from_pretrained(model.save_pretrained(tmp_path / "m"))
        assert loaded.null_threshold_ == threshold
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
