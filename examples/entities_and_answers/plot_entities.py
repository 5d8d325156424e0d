"""
Entities in raw text, from an annotation file
=============================================

You have texts in which somebody marked names with an annotation tool. This example goes from the
tool's file to a model that marks names in new texts, and back to a file that the tool imports.

Doccano exports JSON lines: on each line a text, and for each entity its first character, the
character after its last, and its label. Label Studio, Prodigy, spaCy and brat write the same in
other forms, and ``read_annotations`` reads all of them. The first block writes three such files
from the corpus that ships with skdice. With files of your own, skip the block.
"""

from pathlib import Path

from skdice.datasets import (
    load_town_notes,
    read_annotations,
    write_annotations,
    write_conll,
)

for part in ("train", "dev", "test"):
    path = write_conll(f"{part}.conll", *load_town_notes(subset=part))
    notes = read_annotations(path)
    write_annotations(
        f"{part}.jsonl", notes.texts, notes.entities, "doccano"
    )
print(*Path("train.jsonl").read_text().splitlines()[3:6], sep="\n")

# %%
# ``read_annotations`` sees which tool wrote the file. It checks that each entity lies in its text,
# and names the line and the entity that does not. Offsets count characters as Python does:
# ``text[start:end]`` is the entity.
#
# Look at the counts first. A label with fewer than some 20 entities is hardly learned by any model:
# mark more of it, or join it with another label.
train, dev, test = (
    read_annotations(f"{part}.jsonl") for part in ("train", "dev", "test")
)
labels = [label for row in train.entities for _, _, label in row]
print({label: labels.count(label) for label in sorted(set(labels))})

# %%
# Train and tune
# --------------
#
# ``DiceEntityRecognizer`` takes texts and entities as they are in the file. The loss ``"ce_dice"``
# is mostly dice, which counts entities and not the many words outside them: it learns faster than
# the default, cross-entropy, which this short fit needs.
# ``max_epochs=10`` keeps this page short: leave it out, and ``fit`` chooses, here 30.
#
# An entity is right if its first character, its last and its label are right. The score is micro F1
# over entities. A recognizer that was trained on few entities often finds too few of them.
# ``BiasTunedTagger`` adds a bias to each tag: the mean of the best ones of twenty draws of the dev
# texts. Keep it only if it helps on texts that it has not seen.
from skdice import BiasTunedTagger, DiceEntityRecognizer

recognizer = DiceEntityRecognizer(
    loss="ce_dice", max_epochs=10, random_state=0
)
recognizer.fit(train.texts, train.entities)
tuned = BiasTunedTagger(recognizer, cv="prefit", random_state=0)
tuned.fit(dev.texts, dev.entities)
print("biases:", *tuned.bias_.round(1))
for name, model in (("as trained", recognizer), ("tuned", tuned)):
    print(f"F1 {name} {model.score(test.texts, test.entities):.3f}")

# %%
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
# ``show_entities`` highlights what was found, here in the first test texts that hold entities.
# sphinx_gallery_thumbnail_path = "images/entities.svg"
from skdice.inspection import show_entities

rows = [i for i, row in enumerate(test.entities) if row][:8]
show_entities([test.texts[i] for i in rows], [predicted[i] for i in rows])

# %%
# Use it
# ------
#
# Each entity has a score: the probability that exactly this entity is there. The folder that
# ``save_pretrained`` writes holds the tuned decision, and ``pipeline("token-classification")`` of
# transformers reads it too. The last line sends the predictions back to the tool, so that somebody
# corrects them instead of marking everything by hand.
tuned.save_pretrained("notes-model")
loaded = DiceEntityRecognizer.from_pretrained("notes-model")
new = ["Agnes Pell rowed to Marrow Bay with the Sailors' Guild."]
found = loaded.predict(new)
for e in found[0]:
    print(e.start, e.end, e.label, f"{e.score:.2f}", e.text)
write_annotations("predicted.jsonl", new, found, "doccano")

# %%
# If your texts are tokens with tags already, use ``DiceTokenClassifier``; if entities lie inside
# others, ``DiceMRCTagger``. If they follow a pattern, such as dates or order numbers, a regular
# expression is better. See :doc:`From your annotation tool to a served model </guide/entities>`.
