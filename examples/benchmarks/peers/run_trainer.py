"""The Trainer of transformers, as its course shows it, with its own defaults or our rate."""

from common import Run

run = Run()

import torch  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

run.mark("import")
tokenizer = AutoTokenizer.from_pretrained(run.job["model"])
tagging = run.kind == "tags"
auto = AutoModelForTokenClassification if tagging else AutoModelForSequenceClassification
model = auto.from_pretrained(
    run.job["model"], num_labels=len(run.classes), dtype=torch.float32, ignore_mismatched_sizes=True
)
run.mark("load")
place = {label: i for i, label in enumerate(run.classes)}


def encode(X, y=None):
    """Rows of ids; of a word the first piece has the tag."""
    if tagging:
        encoded = tokenizer(X, is_split_into_words=True, truncation=True)
    elif isinstance(X[0], str):
        encoded = tokenizer(X, truncation=True)
    else:
        encoded = tokenizer([a for a, _ in X], [b for _, b in X], truncation=True)
    rows = [{name: encoded[name][i] for name in encoded} for i in range(len(X))]
    for i, row in enumerate(rows if y is not None else []):
        if tagging:
            words = encoded.word_ids(i)
            row["labels"] = [
                -100 if word is None or word == before else place[y[i][word]]
                for before, word in zip([None, *words], words, strict=False)
            ]
        else:
            row["labels"] = place[y[i]]
    return rows, encoded


rows, _ = encode(*run.train)
run.mark("prepare")
settings = {}
if run.job["setting"].startswith("advice"):
    run.cap(run.job["passes"])  # our number of passes, as our rate
    settings = {
        "learning_rate": 1e-4 if "1e-4" in run.job["setting"] else 3e-4,
        "per_device_train_batch_size": 32,
        "per_device_eval_batch_size": 64,
        "warmup_steps": 0.1,
        "weight_decay": 0.01,
        "bf16": True,
    }
    if tagging:
        # Not for texts: in SMS the long ones are spam, and batches of one class teach nothing.
        settings["train_sampling_strategy"] = "group_by_length"
args = TrainingArguments(
    run.job["scratch"],
    max_steps=run.steps(settings.get("per_device_train_batch_size", 8)),
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
    save_strategy="no",
    logging_strategy="no",
    seed=run.job["seed"],
    **settings,
)
collator = (DataCollatorForTokenClassification if tagging else DataCollatorWithPadding)(tokenizer)
trainer = Trainer(model, args, train_dataset=rows, data_collator=collator)
trainer.train()
# It would group the rows to predict as well, and give their predictions in that order.
args.train_sampling_strategy = "random"
run.mark("train")


def predict(X):
    rows, encoded = encode(X)
    best = trainer.predict(rows).predictions.argmax(-1)
    if not tagging:
        return [run.classes[i] for i in best]
    tags = []
    for i, words in enumerate(X):
        found = ["O"] * len(words)
        before = None
        for place_, word in enumerate(encoded.word_ids(i)):
            if word is not None and word != before:
                found[word] = run.classes[best[i][place_]]
            before = word
        tags.append(found)
    return tags


run.answer(
    predict,
    ["transformers", "accelerate", "torch"],
    batch_size=args.per_device_train_batch_size,
    lr=args.learning_rate,
    updates=args.max_steps,
)
