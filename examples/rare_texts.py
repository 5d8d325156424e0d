"""Find rare texts: compare a loss, a resampler and a tuned decision.

    python examples/rare_texts.py

One text in ten is a request. The score of each model is the F1 of that class on held-out texts.
"""

import random

from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from skdice import BiasTunedClassifier, DiceSequenceClassifier
from skdice.resampling import TextOverSampler, make_pipeline


def make_texts(n=400, seed=0):
    """Texts, one tenth of them requests, with labels."""
    draw = random.Random(seed)
    places = ["the north gate", "the old mill", "the station", "the market"]
    rare = ["please send someone to {}", "could you check {} today", "we need help at {}"]
    usual = ["all is quiet at {}", "we passed {} at noon", "{} was open today", "rain at {}"]
    labels = [int(i % 10 == 0) for i in range(n)]
    return [draw.choice(rare if y else usual).format(draw.choice(places)) for y in labels], labels


def main(**settings):
    """Print the F1 of four ways to handle a rare class."""
    X, y = make_texts()
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    settings = {"random_state": 0, **settings}
    plain = DiceSequenceClassifier(loss="ce", **settings)
    models = {
        "cross-entropy": plain,
        "cross-entropy, over-sampled": make_pipeline(TextOverSampler(random_state=0), plain),
        "cross-entropy, tuned decision": BiasTunedClassifier(plain, cv=0.2, random_state=0),
        "dice": DiceSequenceClassifier(loss="dice", **settings),
    }
    for name, model in models.items():
        found = model.fit(X_train, y_train).predict(X_test)
        print(f"{name:>30}: F1 {f1_score(y_test, found, zero_division=0):.3f}")


if __name__ == "__main__":
    main()
