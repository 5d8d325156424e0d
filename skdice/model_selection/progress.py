"""What a search and a comparison tell of their `Progress`."""

from __future__ import annotations

from typing import Any, Self

from skorch.callbacks import Callback

from skdice._checks import counted
from skdice._progress import Progress
from skdice.model_selection.spaces import import_optuna, suggest
from skdice.model_selection.trials import ended_trials


class SearchProgress(Progress):
    """A callback of Optuna: the trials done, the best score so far and the time left.

    With `verbose` above 1 each trial has a line, with its score and parameters.
    """

    def __init__(self, verbose: int, study: Any, n_trials: int, spaces: Any, kind: str) -> None:
        super().__init__(verbose, kind, every=5.0)
        self.spaces = spaces
        done = len(ended_trials(study))
        self.begin(done, n_trials)
        self.told = -float("inf")
        self.say(f"{counted(n_trials, kind)}", f"{done} done before" if done else "")

    def __call__(self, study: Any, trial: Any) -> None:
        """Tell of a trial."""
        if self.verbose > 1:
            score = f"{trial.value:.3f}" if trial.value is not None else trial.state.name.lower()
            given = (f"{name}={value!r}" for name, value in self._params(trial).items())
            self.say(f"trial {trial.number}: {score}", *given)
        known = ended_trials(study)
        scores = [t.value for t, _ in known if t.state.name == "COMPLETE"]
        best = f"best {max(scores):.3f}" if scores else "none with a score"
        self.advance(len(known), f"{self.unit}s", best)
        has_ended = self.bar is None and len(known) >= (self.total or 0)
        if self.is_due or has_ended:
            left = "" if has_ended else self.left()
            self.say(f"{self.unit} {len(known)} of {self.total}", best, left)

    def _params(self, trial: Any) -> dict[str, Any]:
        return suggest(import_optuna().trial.FixedTrial(trial.params), self.spaces)


class ComparisonProgress(Progress):
    """The row, epoch and update that run, and the time left, by the updates of all rows."""

    def __init__(self, verbose: int) -> None:
        super().__init__(verbose, "update")
        self.label, self.of_one = "", 0
        self.fits_left = 0  # with the one that runs

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the clones of an estimator tell one progress

    def begin_run(self, label: str, seed: int, fits_left: int) -> None:
        """Begin a run; with it so many fits are left."""
        self.label, self.fits_left = f"{label}, seed {seed}", fits_left
        self.advance(self.done, self.label)

    def count(self, net: Any) -> None:
        """Count one more update of a net."""
        self.of_one, at = net.n_updates_, net.done_
        done = self.done + 1
        total = done + self.of_one * self.fits_left - at
        if done == 1:  # the first update is slow: the clock starts after it
            self.begin(done, total)
        where = f"epoch {len(net.history)} of {net.max_epochs}", f"update {at:,} of {self.of_one:,}"
        self.advance(done, self.label, *where, total=total)

    def end_run(self, f1: float, fits_left: int) -> None:
        """Tell of a run that is done."""
        self.total = self.done + self.of_one * fits_left
        self.say(f"{self.label}: F1 {100 * f1:.1f}", self.left())


class OfUpdates(Callback):
    """Tells a `ComparisonProgress` of each update of a net and of its end; clones tell the same."""

    def __init__(self, progress: ComparisonProgress) -> None:
        self.progress = progress

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Tell of an update."""
        self.progress.count(net)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Count a fit, of which a run may have several."""
        self.progress.fits_left -= 1
