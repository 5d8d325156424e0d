"""
Track fits with MLflow
======================

After ten fits nobody remembers which setting gave which score. A tracker writes it down: the
settings, the loss of each epoch, the scores, and the model itself. This tutorial logs two fits,
compares them, and takes the better model out of the tracker.

You need ``pip install 'skdice[plot]' mlflow pandas``. No server has to run: the records are a
database file in the working directory.

In short
--------

With your own texts and labels:

.. code-block:: python

   import mlflow
   from skdice import DiceSequenceClassifier

   model = DiceSequenceClassifier(loss="ce", random_state=0)
   with mlflow.start_run():
       model.fit(texts, labels)
       mlflow.log_params({"loss": "ce", "lr": model.lr_})
       mlflow.log_metrics(model.evaluate(texts_dev, labels_dev))

Below, each step has its reasons and its output.

Data to try it on
-----------------

This block makes short messages, one in ten of which is spam, and cuts them into a part to
train on, one to validate on after each epoch, and one that is looked at once. Some messages are
hard: "call about the book" is written by friends and by spammers. Replace them with your own.
"""

import random

rng = random.Random(0)
spam = [
    "win {} now",
    "claim {} today",
    "{} for you, reply YES",
    "{} is waiting",
    "call about {}",
]
ham = [
    "see you {}",
    "are you free {}?",
    "call about {}",
    "lunch {}?",
    "{} is waiting",
    "I am late {}",
]
ends = [
    "a prize",
    "a phone",
    "tonight",
    "on Friday",
    "at six",
    "the tickets",
    "the book",
]


def message():
    label = "spam" if rng.random() < 0.1 else "ham"
    return rng.choice(spam if label == "spam" else ham).format(
        rng.choice(ends)
    ), label


texts, labels = zip(*(message() for _ in range(900)), strict=True)
train, dev, test = slice(0, 200), slice(200, 500), slice(500, None)

# %%
# A callback that logs each epoch
# -------------------------------
#
# ``callbacks=`` takes callbacks of skorch. ``on_epoch_end`` is called with the net after each
# epoch, and ``net.history[-1]`` is the record of that epoch. It holds ``train_loss``, ``lr``,
# ``dur`` in seconds, and ``valid_score`` if ``fit`` is given a validation set.
import mlflow
from skorch.callbacks import Callback


class LogEpochs(Callback):
    def on_epoch_end(self, net, **kwargs):
        epoch = net.history[-1]
        names = [
            name
            for name in ("train_loss", "valid_score", "lr")
            if name in epoch
        ]
        mlflow.log_metrics(
            {name: epoch[name] for name in names}, step=epoch["epoch"]
        )


# %%
# The numbers arrive while the fit runs, so a curve that goes wrong can be seen before the end. A
# tracker that cannot be reached stops the fit with its own error. To log only at the end, leave the
# callback out and log ``history_`` of the fitted model, which is a list of the same records.
#
# Two fits
# --------
#
# Each fit is a run. Log what you chose, what ``fit`` chose (``max_epochs_`` and ``lr_``), and the
# scores on the development texts. By default ``fit`` chooses the number of epochs. ``max_epochs=4``
# keeps the site's build short.
import logging

from skdice import DiceSequenceClassifier

# It tells at length what it sets up.
logging.getLogger("mlflow").setLevel(logging.ERROR)
logging.getLogger("alembic").setLevel(logging.ERROR)
mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.set_experiment("spam")

for loss in ("ce", "ce_dice"):
    model = DiceSequenceClassifier(
        loss=loss, max_epochs=4, callbacks=[LogEpochs()], random_state=0
    )
    with mlflow.start_run(run_name=loss):
        model.fit(
            texts[train], labels[train], X_val=texts[dev], y_val=labels[dev]
        )
        mlflow.log_params(
            {"loss": loss, "max_epochs": model.max_epochs_, "lr": model.lr_}
        )
        scores = model.evaluate(texts[dev], labels[dev])
        mlflow.log_metrics(
            {f"dev_{name}": value for name, value in scores.items()}
        )
        mlflow.sklearn.log_model(
            model.set_params(callbacks=None),
            name="model",
            serialization_format="cloudpickle",
            pip_requirements=["skdice"],
        )

# %%
# Three settings of ``log_model`` matter:
#
# - ``serialization_format="cloudpickle"``. The default of MLflow 3, ``"skops"``, refuses estimators
#   of other packages than scikit-learn, or asks for a package that you may not have. A pickle can
#   run code when it is read, so load only models that you or people you trust have logged.
# - ``pip_requirements=["skdice"]``. Without it MLflow lists scikit-learn and not skdice, and the
#   model cannot be loaded in the environment that MLflow makes for it.
# - ``callbacks=None``, so that the class ``LogEpochs`` of this script is not part of the pickle.
#
# Compare
# -------
#
# ``search_runs`` gives a table with a row for each run. ``mlflow ui --backend-store-uri
# sqlite:///runs.db`` shows the same in a browser.
runs = mlflow.search_runs(order_by=["metrics.dev_f1 DESC"])
columns = [
    "params.loss",
    "params.lr",
    "params.max_epochs",
    "metrics.dev_f1",
]
print(runs[columns].to_string(index=False))

# %%
# A single seed and few positives: a difference of some points is noise. ``compare_losses`` repeats
# fits over seeds and gives intervals. A tracker stores numbers and does not judge them.
#
# Take the model out
# ------------------
#
# ``search_logged_models`` finds the model of a run, and ``load_model`` reads it. It is the fitted
# estimator, so it predicts, scores and trains further.
best = runs.iloc[0]
(logged,) = mlflow.search_logged_models(
    filter_string=f"source_run_id = '{best.run_id}'", output_format="list"
)
again = mlflow.sklearn.load_model(logged.model_uri)
f1 = again.score(texts[test], labels[test])
print(f"{best['params.loss']}: F1 on the test texts {f1:.3f}")
print(again.predict(["claim a phone today", "lunch on Friday?"]))

# %%
# To keep a model for years, log the folder of ``save_pretrained`` too. It is no pickle, and plain
# transformers reads those of taggers, readers and ``pooling="native"``:
#
# .. code-block:: python
#
#    model.save_pretrained("spam-model")
#    mlflow.log_artifacts("spam-model", "folder")
#
# What autologging does
# ---------------------
#
# ``mlflow.sklearn.autolog()`` wraps the ``fit`` of scikit-learn's own classes. Our estimators are
# not among them, so their fits are not logged, and MLflow does not say so:
mlflow.sklearn.autolog(log_models=False)
with mlflow.start_run() as run:
    DiceSequenceClassifier(max_epochs=1, frozen="encoder").fit(
        texts[train], labels[train]
    )
mlflow.sklearn.autolog(disable=True)
data = mlflow.get_run(run.info.run_id).data
print("parameters:", data.params, "metrics:", data.metrics)

# %%
# A ``GridSearchCV`` or a ``Pipeline`` around an estimator is a class of scikit-learn, and is
# logged. Its metrics named ``training_...`` are measured on the texts that the model was trained
# on, so they are close to 1. Look at ``best_cv_score``.
#
# Without MLflow
# --------------
#
# - **TensorBoard.** skorch brings the callback: ``TensorBoard(SummaryWriter("runs"))``, from
#   ``skorch.callbacks`` and ``torch.utils.tensorboard``, after ``pip install tensorboard``.
# - **Weights & Biases, Neptune, Sacred.** skorch has a callback for each, too.
# - **A file.** A line for each epoch is often enough:
import json
from pathlib import Path


class WriteEpochs(Callback):
    def __init__(self, path):
        self.path = path

    def on_epoch_end(self, net, **kwargs):
        with open(self.path, "a", encoding="utf-8") as file:
            epoch = {
                key: net.history[-1][key]
                for key in ("epoch", "train_loss", "dur")
            }
            file.write(json.dumps(epoch) + "\n")


quick = DiceSequenceClassifier(
    max_epochs=2, frozen="encoder", callbacks=[WriteEpochs("fit.jsonl")]
)
quick.fit(texts[train], labels[train])
print(Path("fit.jsonl").read_text())

# %%
# When not
# --------
#
# - A search of hundreds of settings has a store of its own. ``LossSearchCV`` and ``skdice tune``
#   write theirs to a file that goes on where it stopped.
# - ``net_params={"callbacks": ...}`` also takes callbacks, and ``callbacks=`` is the shorter way.
# - A model of MiniLM's size is 90 MB in each run. If there are many runs, log the model of the best
#   one only.
#
# The picture
# -----------
#
# The tracker gives back what it was given: the loss and the validation score of each epoch.
import matplotlib.pyplot as plt

client = mlflow.MlflowClient()
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for _, run in runs.iterrows():
    for ax, metric in zip(axes, ("train_loss", "valid_score"), strict=True):
        steps = client.get_metric_history(run.run_id, metric)
        values = [step.value for step in steps]
        ax.plot(
            [step.step for step in steps],
            values,
            marker="o",
            label=run["params.loss"],
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="epoch", title=metric)
axes[1].legend()
plt.show()

# %%
# Values of ``train_loss`` of two losses cannot be compared: each is on a scale of its own. Compare
# ``valid_score``. Next: :ref:`what a prediction rests on
# <sphx_glr_auto_tutorials_plot_8_explanations.py>`. See also `Start here <../start.html>`__ for
# comparing losses, and the example :ref:`sphx_glr_auto_gallery_2_data_plot_training_history.py`.
