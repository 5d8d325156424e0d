"""SpanMarker, as its getting-started page shows it: its own Trainer over marked spans."""

from common import Run, tags_of

run = Run()

from datasets import ClassLabel, Dataset, Features, Sequence, Value  # noqa: E402
from span_marker import SpanMarkerModel, Trainer  # noqa: E402
from transformers import AutoTokenizer, TrainingArguments  # noqa: E402

run.mark("import")
# Its notebooks' lengths: spans of up to eight words.
model = SpanMarkerModel.from_pretrained(
    run.job["model"],
    labels=run.classes,
    model_max_length=256,
    marker_max_length=128,
    entity_max_length=8,
)
run.mark("load")
# As many sentences as can be seen: it prepares all that it is given.
X, y, epochs = run.rows()
features = Features(
    {
        "tokens": Sequence(Value("string")),
        "ner_tags": Sequence(ClassLabel(names=run.classes)),
    }
)
place = {tag: i for i, tag in enumerate(run.classes)}
rows = Dataset.from_dict(
    {"tokens": X, "ner_tags": [[place[tag] for tag in row] for row in y]}, features=features
)
# Its page: a rate of 5e-5 in batches of 32. Few updates fit a budget, as each sentence is marked
# with all its spans: our advice is a faster rate in smaller batches.
settings = {"learning_rate": 5e-5, "per_device_train_batch_size": 32}
if run.job["setting"] == "advice":
    settings = {"learning_rate": 3e-4, "per_device_train_batch_size": 16}
args = TrainingArguments(
    run.job["scratch"],
    num_train_epochs=epochs,
    warmup_ratio=0.1,
    weight_decay=0.01,
    bf16=True,
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
    save_strategy="no",
    logging_strategy="no",
    seed=run.job["seed"],
    **settings,
)
run.mark("prepare")
trainer = Trainer(model, args, train_dataset=rows)
trainer.train()
run.mark("train")


tokenizer = AutoTokenizer.from_pretrained(run.job["model"])


def predict(X):
    # It fails on an entity whose first or last word has no piece, such as a joiner of emojis.
    shown = [[word if tokenizer.tokenize(word) else "." for word in words] for words in X]
    tags = []
    for words, entities in zip(X, model.predict(shown, batch_size=32), strict=True):
        spans = [(e["word_start_index"], e["word_end_index"], e["label"]) for e in entities]
        tags.append(tags_of(len(words), spans))
    return tags


run.answer(
    predict,
    ["span-marker", "transformers", "torch"],
    batch_size=args.per_device_train_batch_size,
    lr=args.learning_rate,
)
