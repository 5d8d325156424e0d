"""Draw the pictures of the examples that pages show, as GitHub has no site that makes them.

python docs/images/gallery.py
"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent
# The pictures, and of which script and figure each is.
PICTURES = {
    "compare_losses": ("losses/plot_compare_losses", 0),
    "optuna_search": ("losses/plot_optuna_search", 0),
    "loss_slopes": ("losses/plot_loss_slopes", 0),
    "tversky_search": ("losses/plot_loss_slopes", 1),
    "precision_recall": ("decisions/plot_precision_recall", 0),
    "span_errors": ("entities_and_answers/plot_span_errors", 0),
    "training_history": ("troubleshooting/plot_training_history", 0),
}


def main() -> None:
    """Write the pictures beside this file."""
    mpl.use("Agg")  # plt.show() then leaves the figures open
    for name, (script, number) in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder, plt.rc_context():
            os.chdir(folder)  # where a script may write
            runpy.run_path(str(IMAGES.parents[1] / "examples" / f"{script}.py"))
            figure = plt.figure(plt.get_fignums()[number])
            plt.rcParams.update({"svg.hashsalt": "skdice", "svg.fonttype": "none"})
            path = IMAGES / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            plt.close("all")
            os.chdir(IMAGES)
        print(path.name)


if __name__ == "__main__":
    main()
