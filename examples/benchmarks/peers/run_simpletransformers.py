"""simpletransformers, as its pages show it: 128 pieces of a word for all rows, in fp32."""

from common import Run

run = Run()

import pandas as pd  # noqa: E402
from simpletransformers.classification import ClassificationModel  # noqa: E402
from simpletransformers.ner import NERModel  # noqa: E402

run.mark("import")
X, y, epochs = run.rows()
args = {
    "num_train_epochs": epochs,
    "manual_seed": run.job["seed"],
    "do_lower_case": True,  # it does so for an uncased model only if told to
    "fp16": False,
    "use_multiprocessing": False,
    "use_multiprocessing_for_evaluation": False,
    "no_cache": True,
    "no_save": True,
    "save_model_every_epoch": False,
    "logging_steps": 0,
    "silent": True,
    "overwrite_output_dir": True,
    "output_dir": f"{run.job['scratch']}/output",
    "tensorboard_dir": f"{run.job['scratch']}/runs",
    "learning_rate": 4e-5,
    "train_batch_size": 8,
}
if run.job["setting"] == "advice":
    args |= {"learning_rate": 3e-4, "train_batch_size": 32, "eval_batch_size": 64}
if run.kind == "tags":
    words = [(i, word, tag) for i, row in enumerate(X) for word, tag in zip(row, y[i], strict=True)]
    frame = pd.DataFrame(words, columns=["sentence_id", "words", "labels"])
    model = NERModel("bert", run.job["model"], labels=run.classes, args=args, use_cuda=False)
else:
    labels = [run.classes.index(label) for label in y]
    frame = pd.DataFrame({"text": X, "labels": labels})
    settings = {"num_labels": len(run.classes), "args": args, "use_cuda": False}
    model = ClassificationModel("bert", run.job["model"], **settings)
run.mark("load")
model.train_model(frame)
run.mark("train")


def predict(X):
    if run.kind == "texts":
        return [run.classes[i] for i in model.predict(X)[0]]
    predictions, _ = model.predict(X, split_on_space=False)
    # Words behind its 128 pieces have no prediction.
    return [
        ([next(iter(word.values())) for word in row] + ["O"] * len(words))[: len(words)]
        for words, row in zip(X, predictions, strict=True)
    ]


run.answer(
    predict,
    ["simpletransformers", "transformers", "torch"],
    batch_size=args["train_batch_size"],
    lr=args["learning_rate"],
)
