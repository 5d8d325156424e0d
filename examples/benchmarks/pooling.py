"""Test F1 of mean pooling against the pooling of the architecture's own head in transformers.

    python examples/benchmarks/pooling.py DATA --out results/pooling.jsonl

DATA holds the folders of `examples/paper/tasks.py`. Each run fine-tunes all weights on 1,000 rows:
SMS spam (F1 of spam) and MRPC (F1 of paraphrases) for two epochs, CLINC's intents (macro F1) for
three. Test F1 is on at most 1,000 rows. Prints means over the seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from skdice import DiceSequenceClassifier

EPOCHS = {"sms": 2, "mrpc": 2, "clinc_intents": 3}


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "paper"))
    import tasks

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name, epochs in EPOCHS.items():
        task = tasks.load(name, args.data, limit=1000)
        for loss in ("ce", "dsc"):
            found: dict[str, list[float]] = {"mean": [], "native": []}
            for seed in range(args.seeds):
                for pooling in found:
                    model = DiceSequenceClassifier(
                        loss=loss,
                        pooling=pooling,
                        pos_label=task.pos_label,
                        max_epochs=epochs,
                        random_state=seed,
                    ).fit(*task.train)
                    found[pooling].append(100 * model.evaluate(*task.test)["f1"])
                    record = {"set": name, "loss": loss, "pooling": pooling, "seed": seed}
                    with args.out.open("a") as file:
                        file.write(json.dumps({**record, "f1": found[pooling][-1]}) + "\n")
            means = {pooling: sum(values) / len(values) for pooling, values in found.items()}
            print(f"{name:14} {loss:4} mean {means['mean']:.1f}  native {means['native']:.1f}")


if __name__ == "__main__":
    main()
