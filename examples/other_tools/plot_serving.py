"""
A web service, a batch job, and ONNX
====================================

A trained model has to answer requests, and to go through files that do not fit into memory. This
example puts one into a web service, runs it over a file in pieces, and exports it for servers
without torch. It needs ``pip install 'skdice[onnx]' fastapi uvicorn``.

.. image:: /images/serving.svg
   :alt: A folder is read by skdice, by plain transformers and by ONNX

The first block trains a small filter. ``max_epochs=3`` keeps it short.
"""

import random

from skdice import DiceSequenceClassifier

rng = random.Random(0)
spam = ["win {} now, call us", "claim {} today", "free {}, reply YES"]
ham = ["see you {}", "are you free {}?", "call me {}", "thanks for {}"]
ends = ["a prize", "a phone", "tonight", "on Friday", "the tickets"]
labels = ["spam" if rng.random() < 0.2 else "ham" for _ in range(500)]
kinds = {"spam": spam, "ham": ham}
texts = [rng.choice(kinds[y]).format(rng.choice(ends)) for y in labels]
model = DiceSequenceClassifier(max_epochs=3, random_state=0)
model.fit(texts[:300], labels[:300]).save_pretrained("spam-model")
texts, labels = texts[300:], labels[300:]

# %%
# A web service
# -------------
#
# Save this block as ``serve.py``, set ``OMP_NUM_THREADS=1``, and start a worker for each core:
# ``uvicorn serve:app --workers 4``. At most 256 texts: one request must not block all others.
from fastapi import FastAPI
from pydantic import BaseModel, Field

from skdice import DiceSequenceClassifier

app = FastAPI()
served = DiceSequenceClassifier.from_pretrained("spam-model")


class Messages(BaseModel):
    texts: list[str] = Field(min_length=1, max_length=256)


@app.post("/predict")
def predict(messages: Messages):
    return [str(label) for label in served.predict(messages.texts)]


# %%
# ``TestClient`` calls the service without a network. A wrong request does not reach the model.
from fastapi.testclient import TestClient

client = TestClient(app)
for rows in (["claim a prize today", "lunch at six?"], []):
    reply = client.post("/predict", json={"texts": rows})
    print(reply.status_code, reply.json() if rows else "refused")

# %%
# A batch job
# -----------
#
# ``predict`` wants all rows at once, as does ``skdice predict``. A loop needs memory for one piece.
from itertools import islice

with open("messages.txt", "w") as file:
    file.write("\n".join(texts))
with open("messages.txt") as lines, open("labels.txt", "w") as out:
    while piece := [line.rstrip() for line in islice(lines, 4096)]:
        out.writelines(f"{label}\n" for label in served.predict(piece))

# %%
# ONNX
# ----
#
# ``export_onnx`` writes a graph, a tokenizer and the names of the labels. With ``int8=True`` it
# also writes a graph of 8-bit integers, a quarter of the size, which changes some predictions:
# check it on your own test rows, above all its recall.
#
# The server needs ``onnxruntime`` and ``tokenizers`` only. ONNX has no windows for long texts and
# no Viterbi decoding: see :doc:`/models`. Measure the speed again on your machine.
# sphinx_gallery_thumbnail_path = "images/serving.svg"
import time

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from skdice.export import export_onnx

folder = export_onnx(served, "spam-onnx", int8=True)
tokenizer = Tokenizer.from_file("spam-onnx/tokenizer.json")
tokenizer.enable_padding()
tokenizer.enable_truncation(512)


def logits_of(name, texts):
    session = onnxruntime.InferenceSession(folder / name)
    rows = tokenizer.encode_batch(texts)
    inputs = {
        "input_ids": np.array([row.ids for row in rows]),
        "attention_mask": np.array([row.attention_mask for row in rows]),
        "token_type_ids": np.array([row.type_ids for row in rows]),
    }
    names = [node.name for node in session.get_inputs()]
    return session.run(None, {name: inputs[name] for name in names})[0]


expected = served.predict(texts)
for name in ("model.onnx", "model_int8.onnx"):
    begin = time.perf_counter()
    found = served.classes_[logits_of(name, texts).argmax(1)]
    seconds, alike = time.perf_counter() - begin, (found == expected).mean()
    print(f"{name}: {seconds:.2f} s, {alike:.1%} as torch")
