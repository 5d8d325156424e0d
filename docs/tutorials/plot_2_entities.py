"""
Entities in raw text, from an annotation file
=============================================

You have texts in which somebody marked names with an annotation tool. This tutorial goes from the
tool's file to a model that marks names in new texts, and back to a file that the tool imports.

You need ``pip install 'skdice[plot]' pandas``.

In short
--------

With the file of your tool:

.. code-block:: python

   from skdice import DiceEntityRecognizer
   from skdice.datasets import read_annotations, write_annotations

   notes = read_annotations("train.jsonl")
   recognizer = DiceEntityRecognizer().fit(notes.texts, notes.entities)
   new = ["Agnes Pell rowed from Oldmere to Marrow Bay."]
   found = recognizer.predict(new)
   write_annotations("predicted.jsonl", new, found, "doccano")

Below, each step has its reasons and its output.

A file to try it on
-------------------

Doccano exports JSON lines: on each line a text, and for each entity its first character, the
character after its last, and its label. Label Studio, Prodigy, spaCy and brat write the same in
other forms, and ``read_annotations`` reads all of them.

This block writes three such files from the corpus that ships with skdice. Replace them with
your own and skip this block.
"""

from pathlib import Path

from skdice.datasets import (
    load_town_notes,
    read_annotations,
    write_annotations,
    write_conll,
)

for part in ("train", "dev", "test"):
    notes = read_annotations(
        write_conll(f"{part}.conll", *load_town_notes(subset=part))
    )
    write_annotations(
        f"{part}.jsonl", notes.texts, notes.entities, "doccano"
    )
print(*Path("train.jsonl").read_text().splitlines()[3:6], sep="\n")

# %%
# Read it
# -------
#
# ``read_annotations`` sees which tool wrote the file. It checks that each entity lies in its text,
# and names the line and the entity that does not. Offsets count characters as Python does:
# ``text[start:end]`` is the entity.
train, dev, test = (
    read_annotations(f"{part}.jsonl") for part in ("train", "dev", "test")
)
labels = [label for row in train.entities for _, _, label in row]
with_entities = sum(map(bool, train.entities))
print(f"{len(train.texts)} texts, {with_entities} of them with entities")
print({label: labels.count(label) for label in sorted(set(labels))})

# %%
# Look at the counts first. A label with fewer than some 20 entities is hardly learned by any model:
# mark more of it, or join it with another label.
#
# Train
# -----
#
# ``DiceEntityRecognizer`` takes texts and entities as they are in the file. The loss ``"ce_dice"``
# is half cross-entropy and half dice, which counts entities and not the many words outside them. By
# default ``fit`` chooses the learning rate and the number of epochs, here 30. ``max_epochs=10``
# keeps the site's build short: leave it out for your own data.
from skdice import DiceEntityRecognizer

recognizer = DiceEntityRecognizer(
    loss="ce_dice", max_epochs=10, random_state=0
)
recognizer.fit(train.texts, train.entities)
scores = recognizer.evaluate(test.texts, test.entities)
print({name: round(value, 3) for name, value in scores.items()})

# %%
# An entity counts as right if its first character, its last character and its label are right. The
# score is micro F1 over entities, the usual one for this task.
#
# Decide
# ------
#
# A recognizer that was trained on few entities often finds too few of them. ``BiasTunedTagger``
# adds a bias to each tag, chosen on the dev texts. It keeps the plain decision where a bias does
# not gain on texts outside its own draws, so it seldom harms. ``bias_`` is then 0 everywhere.
from skdice import BiasTunedTagger

tuned = BiasTunedTagger(recognizer, cv="prefit", random_state=0).fit(
    dev.texts, dev.entities
)
print("biases:", *tuned.bias_.round(1))
for name, model in (("as trained", recognizer), ("tuned", tuned)):
    print(f"F1 {name} {model.score(test.texts, test.entities):.3f}")

# %%
# If wrong entities are worse than missed ones, ask for ``scoring=RecallAtPrecision(0.9)``. That
# needs at least 44 predicted entities in the dev texts.
#
# What is wrong?
# --------------
#
# Compare the sets of true and predicted entities. If the list shows mistakes of the annotators,
# mend the file and train again. That is often worth more than any other step.
predicted = tuned.predict(test.texts)
for text, true, found in zip(
    test.texts, test.entities, predicted, strict=True
):
    marked = {(entity.start, entity.end, entity.label) for entity in found}
    for start, end, label in sorted(set(true) ^ marked):
        kind = "missed" if (start, end, label) in true else "wrong"
        print(f"{kind:>6} {label:>5} {text[start:end]!r}")

# %%
# Use it
# ------
#
# ``predict`` gives entities with their characters, label and a score: the probability that exactly
# this entity is there. ``save_pretrained`` writes a folder with the tuned decision in it, which
# ``pipeline("token-classification")`` of transformers reads too.
tuned.save_pretrained("notes-model")
loaded = DiceEntityRecognizer.from_pretrained("notes-model")
new = [
    "Agnes Pell rowed from Oldmere to Marrow Bay with the Sailors' Guild.",
    "The harvest supper was moved to Saturday.",
]
found = loaded.predict(new)
for e in found[0]:
    print(e.start, e.end, e.label, f"{e.score:.2f}", e.text)

# %%
# Send the predictions back to the tool, so that somebody corrects them instead of marking
# everything by hand:
write_annotations("predicted.jsonl", new, found, "doccano")
print(Path("predicted.jsonl").read_text())

# %%
# The same on the command line:
#
# .. code-block:: console
#
#    $ skdice imbalance train.jsonl
#    $ skdice train train.jsonl --dev dev.jsonl --out notes-model
#    $ skdice predict notes-model new.txt --format label-studio --out tasks.json
#
# When not
# --------
#
# - If your texts are tokens with tags already, use ``DiceTokenClassifier``: see
#   `Start here <../start.html>`__.
# - If entities lie inside other entities, use ``DiceMRCTagger``: see `Reading
#   <../guide/reading.html>`__.
# - If entities follow a pattern, such as dates or order numbers, a regular expression is better.
#
# The picture
# -----------
#
# ``show_entities`` highlights what was found, here in the first test texts that hold entities.
# sphinx_gallery_thumbnail_path = "images/entities.svg"
from skdice.inspection import show_entities

rows = [i for i, row in enumerate(test.entities) if row][:8]
show_entities([test.texts[i] for i in rows], [predicted[i] for i in rows])

# %%
# Next: :ref:`several labels a text <sphx_glr_auto_tutorials_plot_3_labels.py>`. See also
# `From your annotation tool to a served model <../guide/entities.html>`__ and the example
# :ref:`sphx_glr_auto_gallery_2_data_plot_span_errors.py`.
