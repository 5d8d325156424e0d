"""Tune a decision for several rare labels a text: whose own biases, and how much is pooled?

    python several_labels.py --data FOLDER

A text joins one to three questions of CLINC, and its labels are those of their intents that are
among twelve. Questions are drawn so that 1 to 3 % of the texts have each label; each part draws
from CLINC's own part. Features are those of a frozen MiniLM, and the head is a linear one. The
seed chooses the training and development rows from a common stock, and the order of training.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

from skdice import BiasTunedClassifier, DiceClassifier, TransformerFeatures
from skdice.metrics.decisions import held_out_rows

HERE = Path(__file__).parent
N_LABELS, FREQUENCIES = 12, np.geomspace(0.01, 0.03, 12)
STOCK = {"train": 6000, "val": 2000, "test": 3000}
N_TRAIN, N_DEV = 4000, (500, 1500)
LOSSES, SEEDS = ("ce", "ce_dice"), range(5)
POOLED = {"not pooled": 1e-9, "pooled by 10": 10, "pooled by 20": 20, "pooled by 50": 50}
SHIPPED = "pooled by 20, mean of draws"


def joined(
    rows: list[list[str]], labels: list[str], n: int, draw: np.random.Generator
) -> tuple[list[str], np.ndarray]:
    """Texts of one to three questions, and their 0/1 rows of labels."""
    place = np.array([labels.index(intent) if intent in labels else -1 for _, intent in rows])
    weight = np.empty(len(rows))
    for label, frequency in enumerate(FREQUENCIES):
        weight[place == label] = frequency / 2 / (place == label).sum()  # two questions a text
    weight[place < 0] = (1 - FREQUENCIES.sum() / 2) / (place < 0).sum()
    texts, y = [], np.zeros((n, N_LABELS + 1), dtype=int)  # the last column is of no label
    for i, size in enumerate(draw.integers(1, 4, size=n)):
        chosen = draw.choice(len(rows), size, p=weight)
        texts.append(". ".join(rows[at][0] for at in chosen))
        y[i, place[chosen]] = 1
    return texts, y[:, :-1]


def load(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and labels of each part."""
    data = json.loads((folder / "clinc_oos" / "data_imbalanced.json").read_text())
    labels = sorted({intent for _, intent in data["train"]})[::12][:N_LABELS]
    draw, features, parts = np.random.default_rng(0), TransformerFeatures(), {}
    for part, n in STOCK.items():
        texts, y = joined(data[part], labels, n, draw)
        parts[part] = features.fit_transform(texts), y
    scaler = StandardScaler().fit(parts["train"][0])
    return {part: (scaler.transform(X), y) for part, (X, y) in parts.items()}


def scores(model: Any, dev: Any, test: Any) -> dict[str, float]:
    """Macro F1 on the test rows by each decision, in points."""
    found = {"0.5": model.predict(test[0])}
    for n_draws in (0, 20):
        for pooled, held_out_rows.POOLING in POOLED.items():  # a constant of the package
            tuned = BiasTunedClassifier(model, scoring="f1", cv="prefit", n_bootstraps=n_draws)
            name = f"{pooled}, {'mean of draws' if n_draws else 'tuned once'}"
            found[name] = tuned.fit(*dev).predict(test[0])
    return {
        name: 100 * float(f1_score(test[1], y, average="macro", zero_division=0))
        for name, y in found.items()
    }


def table(records: list[dict[str, Any]]) -> list[str]:
    """Mean and standard deviation over the seeds, for each loss and number of rows to tune on."""
    cells = list(dict.fromkeys((r["loss"], r["n_dev"]) for r in records))
    heads = [f"`{loss}`, {n:,} rows" for loss, n in cells]
    lines = [" | ".join(["| decision", *heads, "mean |"]), "|---" * (len(cells) + 2) + "|"]
    for name in records[0]["macro_f1"]:
        runs = [
            [r["macro_f1"][name] for r in records if (r["loss"], r["n_dev"]) == cell]
            for cell in cells
        ]
        figures = [f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}" for values in runs]
        shown = f"{name} (default)" if name == SHIPPED else name
        lines.append(" | ".join([f"| {shown}", *figures, f"{np.mean(runs):.1f} |"]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "several-labels.json")
    args = parser.parse_args()
    parts, records = load(args.data), []
    for seed in SEEDS:
        draw = np.random.default_rng(seed)
        train, dev = (draw.permutation(STOCK[part]) for part in ("train", "val"))
        for loss in LOSSES:
            model = DiceClassifier(loss=loss, max_epochs=20, random_state=seed)
            model.fit(*(part[train[:N_TRAIN]] for part in parts["train"]))
            for n in N_DEV:
                rows = tuple(part[dev[:n]] for part in parts["val"])
                positives = [int(rows[1].sum(axis=0).min()), int(rows[1].sum(axis=0).max())]
                record = {"seed": seed, "loss": loss, "n_dev": n, "dev_positives": positives}
                records.append({**record, "macro_f1": scores(model, rows, parts["test"])})
                print(records[-1], flush=True)
    args.out.write_text(json.dumps(records, indent=1))
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
