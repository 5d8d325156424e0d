"""What a search tells of its progress."""

from __future__ import annotations

from typing import Any

from skdice._progress import Progress
from skdice.model_selection.trials import ended_trials


class SearchProgress(Progress):
    """A callback of Optuna that ends a search once `n_trials` of its study have ended.

    It tells the trials done, the best score so far and the time left. With `verbose` above 1 each
    trial has a line.
    """

    def __init__(self, verbose: int, study: Any, n_trials: int, kind: str) -> None:
        super().__init__(verbose, kind, every=5.0)
        self.n_trials = n_trials
        self.begin(len(ended_trials(study)), n_trials)

    def __call__(self, study: Any, trial: Any) -> None:
        """Tell of a trial, and end the search after the last."""
        known = ended_trials(study)
        scores = [t.value for t, _ in known if t.state.name == "COMPLETE"]
        best = f"best {max(scores):.3f}" if scores else "none with a score"
        self.advance(len(known), f"{self.unit}s", best)
        if self.verbose > 1 or self.is_due or len(known) == self.total:
            ended = trial.state.name  # a pruned trial has the score of its first folds
            score = f"score {trial.value:.3f}" if ended == "COMPLETE" else ended.lower()
            self.say(f"{self.unit} {len(known)} of {self.total}", score, best, self.left())
        if len(known) >= self.n_trials:
            study.stop()
