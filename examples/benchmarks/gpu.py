"""Speed on a GPU beside the Hugging Face Trainer and pipeline, within four minutes.

    python examples/benchmarks/gpu.py --out gpu.json
    python examples/benchmarks/gpu.py --small --out gpu.json   # a trial, a minute on a CPU
    python examples/benchmarks/gpu.py --data data/wnut17 --out gpu.json

Models have the shapes of MiniLM and BERT-base, with random weights, and train on WNUT17 where
`--data` has it, else on generated words. Each row is printed and written as it ends. One that fails
says why, and those that no time is left for are named:

- the measured limits of the card: matrix products and memory bandwidth;
- a fit of two epochs in bf16, of skdice and the Trainer, with and without grouping by length: words
  a second in the second epoch, seconds of the fit, the most memory, why it ran without graphs, and
  the share of an H100's peak (989 TFLOP/s in bf16) that useful arithmetic takes: 6 operations for
  each subword and weight, without embeddings;
- a fit of question answering, of skdice and the Trainer: questions a second in the second epoch;
- the kernels that take most of the time of such a fit;
- prediction beside the pipeline, in bf16 and batches of 64: words a second;
- a search of 16 settings of Tversky's alpha and beta and of weighted cross-entropy's K, on the GPU
  and on its CPU;
- F1 on WNUT17 after the recipe's epochs, if there are data and time;
- `tests/test_gpu.py`.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sklearn.datasets import make_classification
from transformers import AutoTokenizer, BertConfig, BertModel

from skdice import DiceClassifier, DiceQuestionAnswerer, DiceTokenClassifier, __version__
from skdice.backbones import DEFAULT_BACKBONE, find_backbone
from skdice.datasets import read_conll
from skdice.model_selection import LossSearchCV, loss_space

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
PRECISION = "bf16" if GPU else "fp32"
PEAK = 989e12  # operations a second of an H100 or H200, bf16 without sparsity
ROOT = Path(__file__).parents[2]
SHAPES = {
    "MiniLM": (384, 12, 12, 1536),
    "BERT-base": (768, 12, 12, 3072),
    "tiny": (32, 1, 2, 64),
}  # hidden size, layers, heads, intermediate size
MAX_LENGTH, STRIDE = 384, 128  # of the windows of a reader


def seconds(program: Callable[[], Any]) -> float:
    """One run, until the device is done."""
    start = time.perf_counter()
    program()
    wait()
    return time.perf_counter() - start


def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def median(program: Callable[[], Any], rounds: int = 5, before: int = 1) -> float:
    for _ in range(before):  # what is compiled, allocated or recorded once
        program()
    return statistics.median(seconds(program) for _ in range(rounds))


def limits(size: int) -> dict[str, float]:
    """Matrix products a second, in TFLOP, and memory, in GB a second."""
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    many = torch.randn(size * size * 4, device=DEVICE)
    times = 10 if GPU else 1

    def products() -> None:
        for _ in range(times):
            a @ b

    return {
        "matrix products, TFLOP/s": 2 * size**3 * times / median(products) / 1e12,
        "memory, GB/s": 2 * many.nbytes / median(many.clone) / 1e9,
    }


def generated(
    n: int, longest: int = 60, mean: float = 2.7
) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of short words, most of them short; one tag in ten is an entity."""
    draw = np.random.default_rng(0)
    vocabulary = np.array(["the", "bus", "late", "green", "river", "Anna", "Rome", "sees", "old"])
    sizes = np.clip(draw.lognormal(mean, 0.5, n).astype(int), 3, longest)
    X = [vocabulary[draw.integers(len(vocabulary), size=size)].tolist() for size in sizes]
    return X, [["B-X" if draw.random() < 0.1 else "O" for _ in row] for row in X]


def backbone_of(shape: str, folder: str) -> str:
    path, tokenizer = f"{folder}/{shape}", AutoTokenizer.from_pretrained(BACKBONE)
    names = "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"
    config = dict(zip(names, SHAPES[shape], strict=True))
    BertModel(BertConfig(vocab_size=len(tokenizer), **config)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


BACKBONE = find_backbone(DEFAULT_BACKBONE)  # whose tokenizer all models have


def measured(program: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a fit says of itself, with its seconds and the most memory of the GPU."""
    if GPU:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    found = program()
    wait()
    found["fit, s"] = time.perf_counter() - start
    if GPU:
        found["memory, GiB"] = torch.cuda.max_memory_allocated() / 2**30
    return found


def ours(X: Any, y: Any, backbone: str, batch_size: int, **params: Any) -> dict[str, Any]:
    tagger = DiceTokenClassifier(
        loss="ce", backbone=backbone, max_epochs=2, batch_size=batch_size, precision=PRECISION,
        random_state=0, **params,
    ).fit(X, y)  # fmt: skip
    last = tagger.history_[-1]
    return {
        "words/s": sum(map(len, X)) / last["dur"],
        "share of peak": useful(tagger, X) / last["dur"] / PEAK,
        "without graphs": last.get("eager", "no"),
    }


def kernels(X: Any, y: Any, backbone: str) -> dict[str, float]:
    """The kernels that take most of the time of two epochs, as shares of all kernels' time."""
    from torch.profiler import ProfilerActivity, profile

    activity = ProfilerActivity.CUDA if GPU else ProfilerActivity.CPU
    with profile(activities=[activity]) as found:
        ours(X, y, backbone, 32)
        wait()
    name = "self_device_time_total" if GPU else "self_cpu_time_total"
    times = {row.key: getattr(row, name) for row in found.key_averages()}
    most = sorted(times, key=times.__getitem__, reverse=True)[:12]
    return {each[:80]: round(times[each] / sum(times.values()), 4) for each in most}


def useful(tagger: DiceTokenClassifier, X: Any) -> float:
    """Operations of an epoch that somebody needs: none for padding, embeddings and the head."""
    rows = tagger.tokenizer_(X, is_split_into_words=True)["input_ids"]
    encoder = tagger.module_.encoder
    of_embeddings = sum(p.numel() for p in encoder.embeddings.parameters())
    n_weights = sum(p.numel() for p in encoder.parameters()) - of_embeddings
    return 6.0 * n_weights * sum(map(len, rows))


def theirs(X: Any, y: Any, backbone: str, batch_size: int, grouped: bool) -> dict[str, Any]:
    """Trainer as its documentation shows it; dynamic padding by its collator."""
    from transformers import AutoModelForTokenClassification, DataCollatorForTokenClassification

    tokenizer = AutoTokenizer.from_pretrained(backbone)
    names = sorted({tag for row in y for tag in row})
    encoded = tokenizer(X, is_split_into_words=True, truncation=True)
    rows = []
    for i, tags in enumerate(y):
        before, labels = None, []
        for word in encoded.word_ids(i):
            new = word is not None and word != before
            labels.append(names.index(tags[word]) if new else -100)
            before = word
        rows.append({name: encoded[name][i] for name in encoded} | {"labels": labels})
    model = AutoModelForTokenClassification.from_pretrained(
        backbone, num_labels=len(names), dtype=torch.float32
    )
    collator = DataCollatorForTokenClassification(tokenizer)
    seconds = second_epoch_of_trainer(model, rows, collator, batch_size, grouped)
    return {"words/s": sum(map(len, X)) / seconds}


def second_epoch_of_trainer(
    model: Any, rows: list[Any], collator: Any, batch_size: int, grouped: bool
) -> float:
    """Seconds of the second of two epochs."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    borders = []

    class Times(TrainerCallback):
        def on_epoch_begin(self, *args: Any, **kwargs: Any) -> None:
            wait()
            borders.append(time.perf_counter())

        on_epoch_end = on_epoch_begin

    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=batch_size,
            train_sampling_strategy="group_by_length" if grouped else "random",
            bf16=PRECISION == "bf16",
            use_cpu=not GPU,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            logging_strategy="no",
        )
        callbacks = [Times()]
        Trainer(
            model, args, train_dataset=rows, data_collator=collator, callbacks=callbacks
        ).train()
    return borders[-1] - borders[-2]


def questions(n: int, longest: int) -> tuple[list[tuple[str, str]], list[Any]]:
    """Questions on contexts of up to so many words; every second one has an answer."""
    contexts, _ = generated(n, longest, mean=4.6)
    draw, X, y = np.random.default_rng(1), [], []
    for i, words in enumerate(contexts):
        place = int(draw.integers(len(words)))
        start = len(" ".join(words[:place])) + (place > 0)
        X.append(("which word does the old river see", " ".join(words)))
        y.append([(start, words[place])] if i % 2 else [])
    return X, y


def windows_of(tokenizer: Any, pairs: Any) -> list[Any]:
    """Windows of all pairs, with the pair that each comes from and its offsets."""
    encoded = tokenizer(
        [q for q, _ in pairs],
        [c for _, c in pairs],
        truncation="only_second",
        max_length=MAX_LENGTH,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    rows = []
    for i, row in enumerate(encoded["overflow_to_sample_mapping"]):
        context = [part == 1 for part in encoded.sequence_ids(i)]
        offsets = [
            o if c else None for o, c in zip(encoded["offset_mapping"][i], context, strict=True)
        ]
        segments = encoded["token_type_ids"][i] if "token_type_ids" in encoded else None
        rows.append((row, encoded["input_ids"][i], segments, offsets))
    return rows


def positions(offsets: Any, answers: Any) -> tuple[int, int]:
    """First and last token of the first answer; 0, 0 where the window does not hold it whole."""
    if not answers:
        return 0, 0
    start, text = answers[0]
    end = start + len(text)
    first = [i for i, o in enumerate(offsets) if o and o[0] <= start < o[1]]
    last = [i for i, o in enumerate(offsets) if o and o[0] < end <= o[1]]
    return (first[0], last[0]) if first and last else (0, 0)


def our_reader(X: Any, y: Any, backbone: str, batch_size: int) -> dict[str, Any]:
    reader = DiceQuestionAnswerer(
        loss="ce", backbone=backbone, max_epochs=2, batch_size=batch_size, precision=PRECISION,
        max_length=MAX_LENGTH, stride=STRIDE, random_state=0,
    ).fit(X, y)  # fmt: skip
    last = reader.history_[-1]
    return {"questions/s": len(X) / last["dur"], "without graphs": last.get("eager", "no")}


def their_reader(X: Any, y: Any, backbone: str, batch_size: int) -> dict[str, Any]:
    """The Trainer on the same windows."""
    from transformers import AutoModelForQuestionAnswering, DataCollatorWithPadding

    model = AutoModelForQuestionAnswering.from_pretrained(backbone, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    rows = []
    for i, ids, segments, offsets in windows_of(tokenizer, X):
        start, end = positions(offsets, y[i])
        row = {"input_ids": ids, "start_positions": start, "end_positions": end}
        rows.append(row if segments is None else row | {"token_type_ids": segments})
    collator = DataCollatorWithPadding(tokenizer)
    seconds = second_epoch_of_trainer(model, rows, collator, batch_size, grouped=False)
    return {"questions/s": len(X) / seconds}


def ratio(report: dict[str, Any], row: str, unit: str = "words/s") -> float:
    return report[row + "skdice"][unit] / report[row + "Trainer"][unit]


def prediction(X: Any, y: Any, backbone: str) -> dict[str, float]:
    """Words a second; of a pipeline whose input is the same words with blanks between them."""
    tagger = DiceTokenClassifier(
        loss="ce", backbone=backbone, max_epochs=1, precision=PRECISION, random_state=0
    ).fit(X[:64], y[:64])
    texts, n_words = [" ".join(row) for row in X], sum(map(len, X))
    with tempfile.TemporaryDirectory() as folder:
        tagger.save_pretrained(folder)
        pipe = transformers.pipeline(
            "token-classification", folder, device=DEVICE,
            dtype=torch.bfloat16 if GPU else torch.float32,
        )  # fmt: skip
        found = {
            "skdice": n_words / median(partial(tagger.predict, X), rounds=3, before=4),
            "pipeline": n_words / median(partial(pipe, texts, batch_size=64), rounds=1),
        }
    return found | {"ratio": found["skdice"] / found["pipeline"]}


def search(device: str, n: int) -> float:
    X, y = make_classification(n, 256, n_informative=32, weights=[0.95], random_state=0)
    found = LossSearchCV(
        DiceClassifier(max_epochs=10, device=device, random_state=0),
        [loss_space("tversky"), loss_space("weighted_ce")],
        n_trials=16,
        cv=3,
        random_state=0,
    )
    return seconds(partial(found.fit, X.astype(np.float32), y))


def quality(data: Path) -> float:
    X, y = read_conll(data / "wnut17train.conll")
    Xt, yt = read_conll(data / "emerging.test.annotated")
    return float(DiceTokenClassifier(random_state=0).fit(X, y).score(Xt, yt))


def tests() -> str:
    """The last line of pytest's on the tests that need a GPU; what failed is printed."""
    options = ["-p", "no:cacheprovider", "--tb=short", "-q", "-m", "gpu", "tests/test_gpu.py"]
    command = [sys.executable, "-m", "pytest", *options]
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    if found.returncode:
        print(found.stdout[-8000:], flush=True)
    return found.stdout.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=None, help="a folder with WNUT17")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--limit", type=float, default=225, help="seconds; later rows are left out")
    parser.add_argument("--no-tests", action="store_true")
    args = parser.parse_args()
    if not GPU and not args.small:
        raise SystemExit("there is no GPU here: give --small to try the script on the CPU")
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    small, started = args.small, time.perf_counter()
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if GPU else platform.machine(),
        "skdice": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "precision": PRECISION,
        "small": small,
        "data": "generated" if args.data is None else "WNUT17",
    }

    def note(name: str, program: Callable[[], Any], least: float = 0.0) -> None:
        """A row; left out where less than `least` seconds remain."""
        spent = time.perf_counter() - started
        try:
            found = program() if args.limit - spent > least else "no time left"
        except Exception as error:  # the other rows may still be measured
            found = f"failed: {error!r}"
        report[name] = found
        print(f"{spent:4.0f} s  {name}: {json.dumps(found)}", flush=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")

    n = 64 if small else 2000
    X, y = generated(n) if args.data is None else read_conll(args.data / "wnut17train.conll")
    X, y = X[:n], y[:n]
    with tempfile.TemporaryDirectory() as folder:
        note("limits", partial(limits, 256 if small else 8192))
        for shape in ["tiny"] if small else ["MiniLM", "BERT-base"]:
            backbone = backbone_of(shape, folder)
            ours(X[:64], y[:64], backbone, 32)  # what is loaded once
            theirs(X[:64], y[:64], backbone, 32, grouped=False)
            for size in (32, 128):
                row, fit = f"{shape}, batch {size}: ", (X, y, backbone, size)
                note(row + "skdice", partial(measured, partial(ours, *fit)))
                note(row + "Trainer", partial(measured, partial(theirs, *fit, grouped=False)))
                grouped = partial(measured, partial(theirs, *fit, grouped=True))
                note(row + "Trainer, grouped", grouped)
                note(row + "ratio to Trainer", partial(ratio, report, row))
            note(f"{shape}, predict, words/s", partial(prediction, X, y, backbone))
            row, fit = (
                f"{shape}, reading: ",
                (*questions(n // 2, 60 if small else 300), backbone, 32),
            )
            note(row + "skdice", partial(measured, partial(our_reader, *fit)))
            note(row + "Trainer", partial(measured, partial(their_reader, *fit)))
            note(row + "ratio to Trainer", partial(ratio, report, row, "questions/s"))
        note(f"{shape}, batch 32: kernels", partial(kernels, X, y, backbone))
        eager = partial(ours, X, y, backbone, 32, net_params={"cuda_graphs": False})
        note(f"{shape}, batch 32: skdice without graphs", partial(measured, eager))
    rows = 300 if small else 20_000
    note("search on the CPU, s", partial(search, "cpu", rows))
    if GPU:
        search("cuda", 300)  # what is loaded once
        note("search on the GPU, s", partial(search, "cuda", rows))
    if not args.no_tests:
        note("tests", tests)
    if args.data is not None and not small:
        note("WNUT17, F1", partial(quality, args.data), least=60.0)


if __name__ == "__main__":
    main()
