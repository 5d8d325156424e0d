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
# Of a script with several figures, the first.
SCRIPTS = (
    "losses/plot_compare_losses",
    "losses/plot_optuna_search",
    "losses/plot_tversky_search",
    "decisions/plot_precision_recall",
    "entities_and_answers/plot_span_errors",
    "troubleshooting/plot_training_history",
    "losses/plot_loss_slopes",
)


def main() -> None:
    """Write the pictures beside this file."""
    mpl.use("Agg")  # plt.show() then leaves the figures open
    for script in SCRIPTS:
        with tempfile.TemporaryDirectory() as folder, plt.rc_context():
            os.chdir(folder)  # where a script may write
            runpy.run_path(str(IMAGES.parents[1] / "examples" / f"{script}.py"))
            figure = plt.figure(plt.get_fignums()[0])
            plt.rcParams.update({"svg.hashsalt": "skdice", "svg.fonttype": "none"})
            path = IMAGES / f"{Path(script).name.removeprefix('plot_')}.svg"
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            plt.close("all")
            os.chdir(IMAGES)
        print(path.name)


if __name__ == "__main__":
    main()
