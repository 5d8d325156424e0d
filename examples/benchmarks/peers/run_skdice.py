"""skdice: `fit(X, y)` with the rate of its recipe, and a decision tuned on development rows."""

from common import Run

run = Run()

from skdice import (  # noqa: E402
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)

run.mark("import")
run.cap(run.job["passes"])  # those that `fit` chooses
X, y, epochs = run.rows()
settings = {"backbone": run.job["model"], "max_epochs": epochs, "random_state": run.job["seed"]}
if run.kind == "tags":
    model = DiceTokenClassifier(**settings).fit(X, y)
else:
    model = DiceSequenceClassifier(pos_label=run.pos_label, **settings).fit(X, y)
run.mark("train")
notes = {"batch_size": model.batch_size, "lr": model.lr_, "loss": model.loss, "rows": len(X)}
if "bf16" in run.job["setting"]:
    # Of predictions, which "auto" makes in fp32; it has trained in bf16 if the processor is fast.
    model.set_params(precision="bf16")
if run.job["setting"].startswith("advice"):
    # A probe tunes on a part of the rows, as it predicts a part.
    n_dev = max(round(run.job["share"] * len(run.dev[0])), 1)
    tuned = BiasTunedTagger if run.kind == "tags" else BiasTunedClassifier
    model = tuned(model, cv="prefit", random_state=run.job["seed"])
    model.fit(run.dev[0][:n_dev], run.dev[1][:n_dev])
    run.mark("tune")
    notes["bias"] = model.bias_.tolist()
run.answer(model.predict, ["skdice", "torch", "transformers", "scikit-learn"], **notes)
