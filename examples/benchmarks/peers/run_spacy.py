"""spaCy with the config that its own command writes for a transformer, and its own update loop."""

from common import Run, tags_of

run = Run()

import random  # noqa: E402
from itertools import chain, repeat  # noqa: E402

from spacy.cli.init_config import init_config  # noqa: E402
from spacy.schemas import ConfigSchemaTraining  # noqa: E402
from spacy.tokens import Doc  # noqa: E402
from spacy.training import Example  # noqa: E402
from spacy.training.loop import subdivide_batch  # noqa: E402
from spacy.util import load_model_from_config, registry  # noqa: E402

run.mark("import")
random.seed(run.job["seed"])
part = "ner" if run.kind == "tags" else "textcat"
config = init_config(lang="en", pipeline=[part], optimize="efficiency", gpu=True, silent=True)
config["components"]["transformer"]["model"]["name"] = run.job["model"]
if run.job["setting"] == "advice":
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 32}
    config["training"]["accumulate_gradient"] = 1
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = 3e-4
    config["components"]["transformer"]["model"]["tokenizer_config"]["use_fast"] = True
nlp = load_model_from_config(config, auto_fill=True)
run.mark("load")


def doc_of(x, tags=None):
    """Words stay as they are; the two texts of a pair are joined by the encoder's separator."""
    if run.kind == "tags":
        return Doc(nlp.vocab, words=x, ents=tags)
    return nlp.make_doc(x if isinstance(x, str) else " [SEP] ".join(x))


def example_of(x, y):
    if run.kind == "tags":
        return Example(doc_of(x), doc_of(x, y))
    return Example.from_dict(doc_of(x), {"cats": {label: label == y for label in run.classes}})


examples = [example_of(x, y) for x, y in zip(*run.train, strict=True)]
nlp.initialize(lambda: examples)
settings = nlp.config.interpolate()["training"]
create = registry.resolve({"batcher": settings["batcher"]})["batcher"]
epochs = (random.sample(examples, len(examples)) for _ in repeat(None))
batches, seen = [], 0
for batch in create(chain.from_iterable(epochs)):
    if batches and seen + len(batch) > run.job["views"]:
        break
    batches.append(list(batch))
    seen += len(batch)
if run.job["setting"] == "advice":
    rate = settings["optimizer"]["learn_rate"]
    rate["total_steps"], rate["warmup_steps"] = len(batches), max(len(batches) // 10, 1)
training = registry.resolve(settings, schema=ConfigSchemaTraining)
optimizer = training["optimizer"]
run.mark("prepare")
for batch in batches:
    for some in subdivide_batch(batch, training["accumulate_gradient"]):
        nlp.update(some, drop=training["dropout"], sgd=False)
    for _, component in nlp.pipeline:
        if hasattr(component, "finish_update"):
            component.finish_update(optimizer)
    optimizer.step_schedules()
run.mark("train")


def predict(X):
    docs = nlp.pipe(map(doc_of, X))
    if run.kind == "texts":
        return [max(doc.cats, key=doc.cats.get) for doc in docs]
    return [
        tags_of(len(doc), [(span.start, span.end, span.label_) for span in doc.ents])
        for doc in docs
    ]


run.answer(
    predict,
    ["spacy", "spacy-transformers", "transformers", "torch"],
    batch_size=seen / len(batches),
    lr=settings["optimizer"]["learn_rate"]["initial_rate"],
    updates=len(batches),
)
