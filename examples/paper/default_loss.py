"""The loss by default, by the rule in docs/evidence.md.

    python full.py run --data FOLDER --passes auto --losses ce ce_dice dsc --sets ...
    python default_loss.py numbers --data FOLDER    # fits of DiceClassifier, some minutes
    python default_loss.py show                     # the table and the verdict, also into the page

`show` reads the records of `full.py` and of "numbers". It does not choose what to judge: `KINDS`
has the sets that the rule names, and a set counts once all three losses have both seeds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from full import RESULTS as FULL
from full_page import TITLES
from pages import replaced
from run import HERE, append, described, environment, key, read
from scipy.stats import t as student
from small_batches import NUMBERS, VECTORS, vectors

RESULTS = HERE / "results" / "numbers.jsonl"
PAGE = HERE.parent.parent / "docs" / "evidence.md"
LOSSES = ("ce", "ce_dice", "dsc")  # of equal ones the first
SEEDS = (0, 1)
HOWS = ("plain", "tuned")
# By group of estimators and kind of task.
KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "classifiers of texts": {
        "texts and pairs": ("sst2_20k", "qqp_10k", "qqp_rare_10k"),
        "several labels": ("goemotions_10k",),
    },
    "taggers": {"tags with `O`": ("wnut17", "bc5cdr_all", "gmb_10k"), "tags without": ("ud_en",)},
    "`DiceClassifier`": {"numbers": (*NUMBERS, *VECTORS)},
    "readers": {"entities as questions": ("bc5cdr_1500",)},
}
Scores = dict[tuple[str, str], dict[str, dict[int, float]]]  # by set and decision, loss, seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["numbers", "show"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--records", type=Path, default=FULL, help="of full.py")
    parser.add_argument("--numbers", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    if args.command == "show":
        show(args)
    elif args.data is None:
        parser.error("numbers needs --data: the folder of the data sets")
    else:
        run_numbers(args)


# ---- fits on numbers


def run_numbers(args: Any) -> None:
    done = {key(record["job"]) for record in read(args.numbers)}
    for name, seed, loss in product((*NUMBERS, *VECTORS), SEEDS, LOSSES):
        job = {"task": name, "seed": seed, "max_epochs": "auto", "loss": loss}
        if key(job) not in done:
            append(args.numbers, record := fit_numbers(job, args.data))
            print(job, record["plain"]["test"], record["tuned"]["test"], flush=True)


def fit_numbers(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`DiceClassifier` as it comes; its decision is tuned by cross-validation."""
    from sklearn.metrics import f1_score

    import skdice

    warnings.simplefilter("ignore")
    of_cpu = time.process_time()
    X, X_test, y, y_test = parts_of(job["task"], folder, job["seed"])
    several = len(np.unique(y)) > 2
    how: dict[str, Any] = {"pos_label": None if several else 1}
    model = skdice.DiceClassifier(loss=job["loss"], random_state=job["seed"], **how)
    scoring = "f1_macro" if several else "auto"
    tuned = skdice.BiasTunedClassifier(model, scoring=scoring, cv=5, random_state=0, **how)
    record = {"job": job, "loss": described(job), "rows": len(X)}
    for name, decided in (("plain", model), ("tuned", tuned)):
        predicted = decided.fit(X, y).predict(X_test)
        average = "macro" if several else "binary"
        f1 = f1_score(y_test, predicted, average=average, zero_division=0)
        record[name] = {"test": {"score": round(float(f1), 5)}}
    return record | {"cpu_seconds": round(time.process_time() - of_cpu, 1), **environment()}


def parts_of(name: str, folder: Path, seed: int) -> Any:
    """X and y of a set of `small_batches.py`, to train on and to test on."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    if name in VECTORS:
        return vectors(name, folder, seed)
    X, y = NUMBERS[name]()
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


# ---- the rule


def scores_of(records: list[dict[str, Any]]) -> Scores:
    """Scores in points of the fits that the rule judges."""
    known = {"task", "seed", "max_epochs", "loss", "precision", "reader"}
    found: Scores = defaultdict(lambda: defaultdict(dict))
    for record in records:
        job = record["job"]
        if set(job) <= known and job["max_epochs"] == "auto" and job["loss"] in LOSSES:
            for how in HOWS:
                if how in record:
                    score = 100 * record[how]["test"]["score"]
                    found[job["task"], how][job["loss"]][job["seed"]] = score
    return found


def whole(scores: Scores, names: tuple[str, ...], how: str) -> dict[str, np.ndarray]:
    """Of each set with all losses and seeds, the scores by loss and seed."""
    return {
        name: np.array([[scores[name, how][loss][seed] for seed in SEEDS] for loss in LOSSES])
        for name in names
        if all(set(SEEDS) <= set(scores.get((name, how), {}).get(loss, ())) for loss in LOSSES)
    }


def first_of(values: Any) -> int:
    """The highest, to a tenth of a point; of equal ones the first."""
    return int(np.argmax(np.round(values, 1)))


def behind(differences: np.ndarray) -> tuple[float, float, bool]:
    """Mean, half of its 95 % interval, and whether the interval is below 0."""
    n = len(differences)
    half = student.ppf(0.975, n - 1) * np.std(differences, ddof=1) / n**0.5
    mean = float(np.mean(differences))
    return mean, float(half), bool(mean + half < 0)


def judged(
    kinds: dict[str, tuple[str, ...]], scores: Scores
) -> tuple[str | None, list[tuple[str, ...]]]:
    """The default of a group of estimators, None without a whole set; and rows of the table."""
    out, worst, rows = set(), dict.fromkeys(LOSSES, 0.0), []
    for (kind, names), how in product(kinds.items(), HOWS):
        found = whole(scores, names, how)
        if not found:
            continue
        table = np.array(list(found.values()))  # sets, losses, seeds
        means = table.mean(axis=(0, 2))
        leader = first_of(means)
        of_sets = table.mean(axis=2) - table.mean(axis=2).max(axis=1, keepdims=True)
        cells = []
        for i, loss in enumerate(LOSSES):
            worst[loss] = min(worst[loss], float(of_sets[:, i].min()))
            cells.append(f"{means[i]:.1f}, worst {of_sets[:, i].min():z.1f}")
            if i != leader:
                mean, half, is_behind = behind((table[:, i] - table[:, leader]).ravel())
                cells[-1] += f", {mean:+.1f} ± {half:.1f}" + ", behind" * is_behind
                out |= {loss} if is_behind else set()
        rows.append((kind, str(len(found)), how, LOSSES[leader], *cells))
    if not rows:
        return None, rows
    left = [loss for loss in LOSSES if loss not in out]
    return left[first_of([worst[loss] for loss in left])] if left else "ce", rows


def lines(scores: Scores) -> Iterator[str]:
    """The table, and under it the verdict."""
    yield "| kind | sets | decision | leader | " + " | ".join(f"`{x}`" for x in LOSSES) + " |"
    yield "|---|---:|---|---" + "|---:" * len(LOSSES) + "|"
    verdicts = {}
    for group, kinds in KINDS.items():
        verdicts[group], rows = judged(kinds, scores)
        for kind, n_sets, how, leader, *cells in rows:
            yield f"| {kind} | {n_sets} | {how} | `{leader}` | {' | '.join(cells)} |"
    if any(verdicts.values()):
        yield ""
        yield "; ".join(f"{group}: `{loss}`" for group, loss in verdicts.items() if loss) + "."


def scores_by_seed(scores: Scores) -> Iterator[str]:
    """Every score of every seed."""
    yield "| data | decision | " + " | ".join(f"`{loss}`" for loss in LOSSES) + " |"
    yield "|---|---" + "|---:" * len(LOSSES) + "|"
    for kinds in KINDS.values():
        for name, how in product([name for names in kinds.values() for name in names], HOWS):
            for values in whole(scores, (name,), how).values():
                cells = [", ".join(f"{value:.1f}" for value in row) for row in values]
                title = TITLES.get(name) or VECTORS.get(name, name)
                yield f"| {title} | {how} | {' | '.join(cells)} |"


def show(args: Any) -> None:
    """Print the tables, and write them into the page."""
    scores, page = scores_of(read(args.records) + read(args.numbers)), args.page.read_text()
    for name, made in (("default loss", lines(scores)), ("scores by seed", scores_by_seed(scores))):
        text = "\n".join(made)
        print(f"{text}\n")
        page = replaced(page, name, text, "default_loss.py")
    args.page.write_text(page)


if __name__ == "__main__":
    main()
