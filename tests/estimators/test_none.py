"""None in the place of rows or targets is refused by name."""

import pytest

from skdice import DiceSequenceClassifier, DiceTokenClassifier


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("estimator", [DiceSequenceClassifier, DiceTokenClassifier])
def test_rows_that_are_none(estimator, verbose, tiny_backbone, sentences):
    model = estimator(backbone=tiny_backbone, max_epochs=1, verbose=verbose)
    with pytest.raises(TypeError, match="X is None"):
        model.fit(None, ["a", "b"])
    rows, tags = sentences
    if estimator is DiceSequenceClassifier:
        rows, tags = ["a b", "c"], [0, 1]
    with pytest.raises(ValueError, match="y is None"):
        model.fit(rows, None)
    model.fit(rows, tags)
    with pytest.raises(TypeError, match="X is None"):
        model.predict(None)
