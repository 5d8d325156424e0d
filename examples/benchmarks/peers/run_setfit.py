"""SetFit: contrastive pairs for the encoder, then a logistic regression."""

from common import Run

run = Run()

from datasets import Dataset  # noqa: E402
from setfit import SetFitModel, Trainer, TrainingArguments  # noqa: E402

run.mark("import")
# Ours, as its pages say nothing of rare classes: a head of balanced classes, and a faster rate. The
# pairs of equal and of unequal labels are balanced already, by over-sampling.
head = {"head_params": {"class_weight": "balanced"}} if run.job["setting"] == "advice" else {}
model = SetFitModel.from_pretrained(run.job["model"], labels=run.classes, device="cpu", **head)
run.mark("load")


def texts_of(X):
    """It reads single texts: those of a pair are joined by the encoder's separator."""
    return [x if isinstance(x, str) else " [SEP] ".join(x) for x in X]


X, y = run.train
rows = texts_of(X), [run.classes.index(label) for label in y]
settings = {}
if run.job["setting"] == "advice":
    settings = {"batch_size": 32, "body_learning_rate": (1e-4, 1e-5)}
size = settings.get("batch_size", 16)
args = TrainingArguments(
    output_dir=run.job["scratch"],
    max_steps=run.steps(size),
    report_to="none",
    save_strategy="no",
    logging_strategy="no",
    show_progress_bar=False,
    seed=run.job["seed"],
    **settings,
)
run.mark("prepare")
trainer = Trainer(model, args, train_dataset=Dataset.from_dict({"text": rows[0], "label": rows[1]}))
# The two halves of `train`: the second, over all rows, takes as long however many pairs were seen.
trainer.train_embeddings(*rows, args=args)
run.mark("train")
trainer.train_classifier(*rows, args=args)
run.mark("head")
run.answer(
    lambda X: model.predict(texts_of(X), use_labels=True),
    ["setfit", "sentence-transformers", "transformers", "torch"],
    batch_size=size,
    lr=args.body_embedding_learning_rate,
    updates=args.max_steps,
)
