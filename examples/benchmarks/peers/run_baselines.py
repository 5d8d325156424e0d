"""N-grams with a logistic regression, or a conditional random field: the baselines of skdice."""

from common import Run

run = Run()

from skdice import (  # noqa: E402
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    TfidfClassifier,
)

run.mark("import")
if run.kind == "tags":
    packages = ["skdice", "python-crfsuite"]
    model = CRFTagger(random_state=run.job["seed"])
    # A budget may be too short for all sentences.
    X, y = run.train if run.job["views"] > len(run.train[0]) else run.rows()[:2]
else:
    packages = ["skdice", "scikit-learn"]
    model = TfidfClassifier(pos_label=run.pos_label, random_state=run.job["seed"])
    X, y = run.train
model.fit(X, y)
run.mark("train")
notes = {"rows": len(X)}
if run.job["setting"] == "advice":
    n_dev = max(round(run.job["share"] * len(run.dev[0])), 1)
    tuned = BiasTunedTagger if run.kind == "tags" else BiasTunedClassifier
    model = tuned(model, cv="prefit", random_state=run.job["seed"])
    model.fit(run.dev[0][:n_dev], run.dev[1][:n_dev])
    run.mark("tune")
run.answer(model.predict, packages, **notes)
