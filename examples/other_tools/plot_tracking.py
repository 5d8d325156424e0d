"""
Track fits with MLflow
======================

After ten fits nobody remembers which setting gave which score. A tracker writes it down: the
settings, the loss of each epoch, the scores, and the model itself. This example logs two fits,
compares them, and takes the better model out of the tracker. It needs ``pip install mlflow``. No
server has to run: the records are a database file in the working directory.

The data are short messages, one in ten of which is spam, cut into a part to train on, one to
validate on after each epoch, and one that is looked at once.
"""

import random

rng = random.Random(0)
spam = ["win {} now", "claim {} today", "{} for you, reply YES"]
spam += ["{} is waiting", "call about {}"]
ham = ["see you {}", "are you free {}?", "call about {}", "lunch {}?"]
ham += ["{} is waiting", "I am late {}"]
ends = ["a prize", "a phone", "tonight", "on Friday", "at six"]
labels = ["spam" if rng.random() < 0.1 else "ham" for _ in range(900)]
texts = [
    rng.choice(spam if label == "spam" else ham).format(rng.choice(ends))
    for label in labels
]
train, dev, test = slice(0, 200), slice(200, 500), slice(500, None)

# %%
# ``callbacks=`` takes callbacks of skorch. ``on_epoch_end`` is called with the net after each
# epoch, and ``net.history[-1]`` is the record of that epoch. The numbers arrive while the fit runs.
# To log only at the end, use ``history_`` of the fitted model, a list of the same records.
#
# Each fit is a run. Log what you chose, what ``fit`` chose (``max_epochs_`` and ``lr_``), and the
# scores on the dev texts. ``max_epochs=4`` keeps this page short: without it, ``fit`` chooses.
import logging

import mlflow
from skorch.callbacks import Callback

from skdice import DiceSequenceClassifier

# It tells at length what it sets up.
logging.getLogger("mlflow").setLevel(logging.ERROR)
logging.getLogger("alembic").setLevel(logging.ERROR)
mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.set_experiment("spam")


class LogEpochs(Callback):
    def on_epoch_end(self, net, **kwargs):
        epoch = net.history[-1]
        for name in ("train_loss", "valid_score", "lr"):
            mlflow.log_metric(name, epoch[name], step=epoch["epoch"])


for loss in ("ce", "ce_dice"):
    model = DiceSequenceClassifier(
        loss=loss, max_epochs=4, callbacks=[LogEpochs()], random_state=0
    )
    with mlflow.start_run(run_name=loss):
        model.fit(
            texts[train], labels[train], X_val=texts[dev], y_val=labels[dev]
        )
        chosen = {"max_epochs": model.max_epochs_, "lr": model.lr_}
        mlflow.log_params({"loss": loss, **chosen})
        mlflow.log_metric("dev_f1", model.score(texts[dev], labels[dev]))
        mlflow.sklearn.log_model(
            model.set_params(callbacks=None),
            name="model",
            serialization_format="cloudpickle",
            pip_requirements=["skdice"],
        )

# %%
# - ``serialization_format="cloudpickle"``: the default of MLflow 3, ``"skops"``, refuses estimators
#   of other packages than scikit-learn. A pickle can run code: load only models that you trust.
# - ``pip_requirements=["skdice"]``: without it MLflow lists scikit-learn and not skdice.
# - ``callbacks=None``: the class ``LogEpochs`` is then no part of the pickle. To keep a model for
#   years, also log the folder that ``save_pretrained`` writes, with ``mlflow.log_artifacts``.
#
# Compare
# -------
#
# ``mlflow ui --backend-store-uri sqlite:///runs.db`` shows the same table in a browser. With one
# seed and few positives a difference of some points is noise; ``compare_losses`` repeats fits.
runs = mlflow.search_runs(order_by=["metrics.dev_f1 DESC"])
print(runs[["params.loss", "params.lr", "metrics.dev_f1"]].to_string())
best = runs.iloc[0]
(logged,) = mlflow.search_logged_models(
    filter_string=f"source_run_id = '{best.run_id}'", output_format="list"
)
again = mlflow.sklearn.load_model(logged.model_uri)
print(f"F1 on the test texts {again.score(texts[test], labels[test]):.3f}")

# %%
# The picture shows what was logged. Values of ``train_loss`` of two losses are on different scales;
# compare ``valid_score``.
import matplotlib.pyplot as plt

client = mlflow.MlflowClient()
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, metric in zip(axes, ("train_loss", "valid_score"), strict=True):
    for _, run in runs.iterrows():
        steps = client.get_metric_history(run.run_id, metric)
        values = [step.value for step in steps]
        epochs = [step.step for step in steps]
        ax.plot(epochs, values, "o-", label=run["params.loss"])
    ax.set(xlabel="epoch", title=metric, xticks=epochs)
axes[1].legend()
plt.show()

# %%
# ``mlflow.sklearn.autolog()`` wraps only the ``fit`` of scikit-learn's own classes. It logs a
# ``GridSearchCV`` or a ``Pipeline`` around our estimators, and not a fit of one of them. skorch has
# callbacks for TensorBoard, Weights & Biases, Neptune and Sacred, and all of them work here.
# ``LossSearchCV`` has a store of its own.
