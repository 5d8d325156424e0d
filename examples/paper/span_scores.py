"""Do the scores of spans mean what they say? On saved probabilities; no model is fitted.

    python run.py starts --data FOLDER --probabilities /tmp/probabilities ...
    python span_scores.py /tmp/probabilities --data FOLDER

Prints the expected calibration error (10 bins) of the spans that are predicted for the test
sentences: without tuning, and with a decision and scores tuned on the development sentences, as
`BiasTunedTagger` tunes them. "own kind" is the error where the scores of each half of the test
sentences are tuned on the other half: what is left of the error if both are of one kind. "chance"
is the error that perfect scores have, as spans are few.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
from decisions import Part, parts_of, per_class
from scipy.special import log_softmax

from skdice.metrics import expected_calibration_error
from skdice.metrics.calibration import SpanScales, calibrate, judged
from skdice.tags.decoding import decode
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import get_spans
from skdice.tags.spans import ScoredSpan

Pairs = list[tuple[ScoredSpan, bool]]


def predicted(part: Part, bias: np.ndarray, temperature: float) -> list[Pairs]:
    """The spans that are predicted for each sentence, each with whether it is there."""
    log_p = log_softmax((part.log_p + bias) / temperature, axis=1)
    tables = [log_p[rows] for rows in part.groups]
    posterior = SpanPosterior(part.classes, "iob2")
    pairs: list[Pairs] = []
    tagged = decode(tables, part.classes, "iob2", constrained=True)  # as the tagger does
    rows = zip(tables, tagged, part.tags, strict=True)
    for table, tags, true in rows:
        spans = get_spans(tags, "iob2")
        scored = (
            map(ScoredSpan, *zip(*spans, strict=True), posterior(table, spans)) if spans else []
        )
        pairs.append(judged([*scored], true, "iob2"))
    return pairs


def all_of(rows: Iterable[Pairs]) -> Pairs:
    return [*chain.from_iterable(rows)]


def error(pairs: Pairs) -> float:
    scores, right = [span.score for span, _ in pairs], [known for _, known in pairs]
    return expected_calibration_error(right, scores, n_bins=10)


def crossed(pairs_of: list[Pairs]) -> Pairs:
    """Spans of sentences, with scores that were tuned on those of every second other sentence."""
    scored: Pairs = []
    for half in (0, 1):
        tuning, tested = (all_of(pairs_of[start::2]) for start in (1 - half, half))
        spans = SpanScales(tuning)([span for span, _ in tested])
        scored += [*zip(spans, [known for _, known in tested], strict=True)]
    return scored


def errors_of(parts: dict[str, Part], seed: int) -> dict[str, float]:
    """The errors on the test spans of one run."""
    dev, test = parts["dev"], parts["test"]
    bias = per_class(dev, seed)
    temperature, _ = calibrate(dev.log_p + bias, dev.truth, biases=False)
    of_dev = all_of(predicted(dev, bias, temperature))
    scales = SpanScales(of_dev)
    of_sentences = predicted(test, bias, temperature)
    tuned = all_of(of_sentences)
    scaled = [*zip(scales([span for span, _ in tuned]), [known for _, known in tuned], strict=True)]
    draw = np.random.default_rng(seed)
    chance = [[(span, draw.random() < span.score) for span, _ in scaled] for _ in range(20)]
    return {
        "before": error(all_of(predicted(test, np.zeros(len(bias)), 1.0))),
        "decision tuned": error(tuned),
        "scores tuned": error(scaled),
        "own kind": error(crossed(of_sentences)),
        "chance": float(np.mean([error(pairs) for pairs in chance])),
        "right in dev": float(np.mean([known for _, known in of_dev])),
        "right in test": float(np.mean([known for _, known in tuned])),
        "spans": len(scaled),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probabilities", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--losses", nargs="+", default=["ce", "ce_dice"])
    parser.add_argument("--tasks", nargs="+", default=["wnut17", "bc5cdr"])
    args = parser.parse_args()
    runs = defaultdict(list)
    for file in sorted(args.probabilities.glob("*.npz")):
        with np.load(file, allow_pickle=True) as saved:
            job = dict(json.loads(str(saved["job"])))
        if job["task"] in args.tasks and job["loss"] in args.losses:
            _, parts = parts_of(file, args.data)
            row = job["task"], job["loss"], job["max_epochs"]
            runs[row].append(errors_of(parts, job["seed"]))
    for row, found in sorted(runs.items()):
        means = {name: np.mean([errors[name] for errors in found]) for name in found[0]}
        figures = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items() if name != "spans")
        print(*row, f"({len(found)} runs, {means['spans']:.0f} spans): {figures}")


if __name__ == "__main__":
    main()
