"""
A served model, a batch job, and ONNX
=====================================

A trained model has to answer requests, and to go through files that do not fit into memory. This
tutorial puts one into a web service of twenty lines, runs it over a file row by row, and exports it
for servers without torch.

You need ``pip install 'skdice[plot,onnx]' fastapi uvicorn pandas``.

In short
--------

With a folder ``spam-model`` that ``save_pretrained`` wrote, and a file with a text on each line:

.. code-block:: python

   from skdice import DiceSequenceClassifier
   from skdice.export import export_onnx

   served = DiceSequenceClassifier.from_pretrained("spam-model")
   with open("messages.txt", encoding="utf-8") as lines:
       for label in served.iter_predict(line.strip() for line in lines):
           print(label)
   export_onnx(served, "spam-onnx", int8=True)

Below, each step has its reasons and its output.

A model to try it on
--------------------

This block trains a small spam filter on a few made-up messages and saves it. Use a folder of
your own, such as that of :ref:`the first tutorial <sphx_glr_auto_tutorials_plot_1_spam.py>`, and
skip this block. By default ``fit`` chooses the number of epochs; ``max_epochs=3`` keeps the site's
build short.
"""

import random

from skdice import DiceSequenceClassifier

rng = random.Random(0)
spam = [
    "win {} now, call us",
    "claim {} today",
    "free {} for you, reply YES",
    "{} is waiting, call now",
]
ham = [
    "see you {}",
    "are you free {}?",
    "call me {}",
    "lunch {}?",
    "I am late {}",
    "thanks for {}",
]
ends = [
    "a prize",
    "a phone",
    "tonight",
    "on Friday",
    "at six",
    "the tickets",
    "the book",
    "500 pounds",
]


def message():
    label = "spam" if rng.random() < 0.2 else "ham"
    return rng.choice(spam if label == "spam" else ham).format(
        rng.choice(ends)
    ), label


texts, labels = zip(*(message() for _ in range(300)), strict=True)
model = DiceSequenceClassifier(loss="ce", max_epochs=3, random_state=0).fit(
    texts, labels
)
model.save_pretrained("spam-model")

# %%
# A web service
# -------------
#
# Save the next block as ``serve.py`` and start it with ``uvicorn serve:app``. The model is read
# once, when the service starts. A decision that was tuned before ``save_pretrained`` is part of the
# folder, so the label is that of the highest probability. The limit on the number of texts keeps
# one request from blocking all others.
from fastapi import FastAPI
from pydantic import BaseModel, Field

from skdice import DiceSequenceClassifier

app = FastAPI()
served = DiceSequenceClassifier.from_pretrained("spam-model")


class Messages(BaseModel):
    texts: list[str] = Field(min_length=1, max_length=256)


@app.post("/predict")
def predict(messages: Messages):
    probabilities = served.predict_proba(messages.texts)
    best = probabilities.argmax(axis=1)
    return [
        {
            "label": str(served.classes_[i]),
            "probability": round(float(row[i]), 4),
        }
        for i, row in zip(best, probabilities, strict=True)
    ]


# %%
# ``TestClient`` of FastAPI calls the service without a network, so a test of yours can do the same.
# A request that is not a list of texts is refused before it reaches the model.
from fastapi.testclient import TestClient

client = TestClient(app)
reply = client.post(
    "/predict", json={"texts": ["claim a prize today", "lunch at six?"]}
)
print(reply.status_code, reply.json())
print(client.post("/predict", json={"texts": []}).status_code)

# %%
# In production:
#
# - ``def predict``, and not ``async def``: FastAPI then calls it in a thread, and the service stays
#   responsive.
# - Set ``OMP_NUM_THREADS=1`` and start one worker for each core: ``uvicorn serve:app --workers 4``.
#   Each worker holds a model of its own.
# - On a processor with bf16, ``served.set_params(precision="bf16")`` is about twice as fast.
# - Send many texts in one request rather than many requests: texts of similar length are computed
#   together.
#
# A batch job over a million rows
# -------------------------------
#
# ``predict`` wants all rows at once. ``iter_predict`` reads them from a generator, holds 4,096 rows
# at a time, and gives one prediction after the other. Memory stays the same for a thousand rows or
# a billion. Here are 2,000 rows; nothing changes for more.
import json
import time
from pathlib import Path

Path("messages.txt").write_text(
    "".join(message()[0] + "\n" for _ in range(2000))
)


def read(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n")


begin = time.perf_counter()
with open("predictions.jsonl", "w", encoding="utf-8") as out:
    predictions = served.iter_predict(read("messages.txt"))
    for text, label in zip(read("messages.txt"), predictions, strict=True):
        out.write(json.dumps({"text": text, "label": str(label)}) + "\n")
seconds = time.perf_counter() - begin
minutes = seconds * 500 / 60
print(f"2,000 short rows: {seconds:.1f} s")
print(f"a million at this speed: {minutes:.0f} minutes")

# %%
# ``iter_predict(rows, method="predict_proba")`` gives probabilities. Where a block holds a bad row,
# such as None, the error names the row and says where its block begins. The same on the command
# line, which also reads and writes row by row:
#
# .. code-block:: console
#
#    $ cat messages.txt | skdice predict spam-model - --format jsonl > predictions.jsonl
#
# ONNX
# ----
#
# A server without torch needs a graph, a tokenizer and the names of the labels. ``export_onnx``
# writes all three. With ``int8=True`` it also writes a graph of 8-bit integers, which is a quarter
# of the size and changes some predictions. ``with_onnx`` gives the same classifier over such a
# graph, so that you see what changes:
from skdice.export import export_onnx, with_onnx

folder = export_onnx(served, "spam-onnx", int8=True)
test_texts, test_labels = zip(*(message() for _ in range(200)), strict=True)
models = {
    "torch": served,
    "ONNX": with_onnx(served, folder / "model.onnx"),
    "ONNX, int8": with_onnx(served, folder / "model_int8.onnx"),
}
for name, one in models.items():
    print(f"{name:>10}: F1 {one.score(test_texts, test_labels):.3f}")

# %%
# The server itself needs ``onnxruntime`` and ``tokenizers`` only:
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("spam-onnx/tokenizer.json")
tokenizer.enable_padding()
tokenizer.enable_truncation(512)
session = onnxruntime.InferenceSession("spam-onnx/model.onnx")
config = json.loads(Path("spam-onnx/config.json").read_text())


def predict_onnx(texts):
    rows = tokenizer.encode_batch(texts)
    inputs = {
        "input_ids": np.array([row.ids for row in rows]),
        "attention_mask": np.array([row.attention_mask for row in rows]),
        "token_type_ids": np.array([row.type_ids for row in rows]),
    }
    wanted = [node.name for node in session.get_inputs()]
    logits = session.run(None, {name: inputs[name] for name in wanted})[0]
    return [config["id2label"][str(i)] for i in logits.argmax(axis=1)]


print(predict_onnx(["claim a prize today", "lunch at six?"]))
assert predict_onnx(list(test_texts)) == list(served.predict(test_texts))

# %%
# When not
# --------
#
# - If you serve with plain transformers already, train with ``pooling="native"``: then the folder
#   of ``save_pretrained`` is all that ``pipeline("text-classification")`` needs. See `Saving,
#   serving and adapting models <../models.html>`__.
# - ONNX has no windows for long texts and no Viterbi decoding: for a tagger with these, serve
#   skdice.
# - Check the int8 graph on your own test rows before you use it, above all its recall.
#
# The picture
# -----------
#
# Texts a second and size of each, on the machine that built this page. Measure again on yours.
import matplotlib.pyplot as plt

speed = {}
for name, one in models.items():
    one.predict(test_texts[:32])  # warm up
    begin = time.perf_counter()
    one.predict(test_texts)
    speed[name] = len(test_texts) / (time.perf_counter() - begin)
size = {"ONNX": "model.onnx", "ONNX, int8": "model_int8.onnx"}
names = [
    f"{name}\n{(folder / size[name]).stat().st_size / 1e6:.0f} MB"
    if name in size
    else name
    for name in models
]
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.bar(names, list(speed.values()))
ax.set_ylabel("texts a second")
plt.show()

# %%
# Next: :ref:`track fits with MLflow <sphx_glr_auto_tutorials_plot_7_tracking.py>`. See also `Speed
# <../speed.html>`__.
