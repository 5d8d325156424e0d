"""Does a saved folder survive kills and damage?

    python saves.py                      # about 5 minutes on two cores
    python saves.py --kills 20 --mutations 40

A save over an old model is killed at each of its steps, and at random moments: what is then in the
folder must be the old model or the new one, or else both must lie beside it under the names that
`from_pretrained` tells. A writer of a file is killed likewise. And a folder is damaged in many
ways: it must load as before, or be refused by name. Prints a table of what was tried, what survived
and what was lost.
POSIX only.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXTS = ["free money now", "lunch today", "win a prize", "the bus was old", "call bob", "rain"]


def small_backbone(folder: Path) -> str:
    """A random encoder of 4 MB with the tokenizer of the default backbone."""
    import transformers

    from skdice.backbones import DEFAULT_BACKBONE, load_tokenizer

    tokenizer = load_tokenizer(DEFAULT_BACKBONE)
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    config = transformers.BertConfig(vocab_size=len(tokenizer), **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def fitted(backbone: str) -> list[Any]:
    """Two classifiers that transformers reads, with other labels, and one with skdice's head."""
    from skdice import DiceSequenceClassifier

    models = []
    for seed, pooling, labels in ((0, "native", "ab"), (1, "native", "cd"), (2, "mean", "ef")):
        model = DiceSequenceClassifier(
            backbone=backbone, pooling=pooling, max_epochs=1, lr=1e-2, random_state=seed
        )
        models.append(model.fit(TEXTS, [labels[i % 2] for i in range(len(TEXTS))]))
    return models


def answer(model: Any) -> tuple[Any, ...]:
    return (*model.classes_.tolist(), *model.predict_proba(TEXTS).round(5).ravel().tolist())


# ---- kills


def die_at(step: int | None, counts: Any) -> None:
    """Kill this process before its call number `step` to the system, or count the calls."""
    seen = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if event == "open" or event.startswith(("os.", "shutil.", "ctypes.")):
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
            elif step is None:
                counts(seen)

    sys.addaudithook(hook)


def child(work: Callable[[], Any], after: float | None = None) -> None:
    """Run `work` in a process of its own, which is killed after so many seconds."""
    process = os.fork()
    if not process:
        try:
            work()
        finally:
            os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def kills(wanted: int, backbone: str) -> list[str]:
    """Kill saves over an old model at each step, and at random moments, `wanted` in all."""
    from skdice import DiceSequenceClassifier

    models = fitted(backbone)
    answers = [answer(model) for model in models]
    draw, lost, outcomes = random.Random(0), 0, collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        target, counted = home / "model", home / "count"

        def start(old: int) -> None:
            shutil.rmtree(target, ignore_errors=True)
            models[old].save_pretrained(target)
            (target / "notes").mkdir()
            (target / "notes" / "log.txt").write_text("of a user")

        def save(new: int, step: int | None) -> None:
            handle = os.open(counted, os.O_WRONLY | os.O_CREAT)
            die_at(step, lambda n: os.pwrite(handle, b"%6d" % n, 0))
            models[new].save_pretrained(target)

        def intact(old: int, new: int) -> bool:
            between = not target.exists()
            if between:
                try:
                    DiceSequenceClassifier.from_pretrained(target)
                except ValueError as error:
                    before, saved = re.findall(r"'([^']+\.(?:old|new)-\w+)'", str(error))
                for folder, which in ((before, old), (saved, new)):
                    if answer(DiceSequenceClassifier.from_pretrained(folder)) != answers[which]:
                        return False
                Path(saved).rename(target)
            found = answer(DiceSequenceClassifier.from_pretrained(target))
            outcomes["both" if between else "new" if found == answers[new] else "old"] += 1
            notes = (target / "notes" / "log.txt").read_text()
            whole = found in (answers[old], answers[new]) and notes == "of a user"
            models[new].save_pretrained(target)
            again = answer(DiceSequenceClassifier.from_pretrained(target)) == answers[new]
            notes = (target / "notes" / "log.txt").read_text()
            left = [*home.glob("model.old-*")]
            for path in home.glob("model.new-*"):
                shutil.rmtree(path)
            return whole and again and notes == "of a user" and not left

        pairs = [(0, 1), (1, 2), (2, 0)]
        steps, seconds = [], []
        for old, new in pairs:
            start(old)
            begun = time.perf_counter()
            child(lambda new=new: save(new, None))
            seconds.append(time.perf_counter() - begun)
            steps.append(int(counted.read_text()))
        every = [
            (pair, step) for pair, n in zip(pairs, steps, strict=True) for step in range(1, n + 1)
        ]
        at_steps = draw.sample(every, min(len(every), wanted * 4 // 5))
        for i in range(wanted):
            if i < len(at_steps):
                (old, new), step = at_steps[i]
                start(old)
                child(lambda new=new, step=step: save(new, step))
            else:
                old, new = draw.choice(pairs)
                start(old)
                after = draw.uniform(0, max(seconds))
                child(lambda new=new: save(new, 10**9), after)
            try:
                lost += not intact(old, new)
            except Exception as error:
                print(f"lost: {error!r}", file=sys.stderr)
                lost += 1
    what = (
        f"SIGKILL of a save: at {len(at_steps)} of its {sum(steps)} steps, then at random "
        f"({outcomes['old']} times the old model was there, {outcomes['new']} the new, "
        f"{outcomes['both']} both beside it)"
    )
    return [what, str(wanted), str(lost)]


def killed_files(wanted: int) -> list[str]:
    """Kill writers of a file at each of their steps: it is the old one or the new."""
    from skdice.datasets import write_conll

    texts = {word: "\n".join([f"{word}\tO\n" * 50] * 20) for word in "ab"}
    lost, outcomes = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        target, counted = home / "file.conll", home / "count"

        def write(word: str) -> None:
            write_conll(target, [[word] * 50] * 20, [["O"] * 50] * 20)

        def die(step: int | None) -> None:
            handle = os.open(counted, os.O_WRONLY | os.O_CREAT)
            die_at(step, lambda n: os.pwrite(handle, b"%6d" % n, 0))
            write("b")

        write("a")
        child(lambda: die(None))
        steps = int(counted.read_text())
        for i in range(wanted):
            write("a")
            target.chmod(0o640)
            child(lambda step=i % steps + 1: die(step))
            found, mode = target.read_text(), target.stat().st_mode & 0o777
            outcomes["new" if found == texts["b"] else "old"] += 1
            lost += not (found in texts.values() and mode == 0o640)
    what = (
        f"SIGKILL of a writer of a file, at each of its {steps} steps ({outcomes['old']} times the "
        f"old file was there, {outcomes['new']} the new)"
    )
    return [what, str(wanted), str(lost)]


# ---- damage


def leaves(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of nested JSON."""
    if isinstance(content, (dict, list)) and content:
        items = content.items() if isinstance(content, dict) else enumerate(content)
        return [leaf for key, value in items for leaf in leaves(value, (*path, key))]
    return [path]


def other_value(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)) and draw.random() < 0.7:
        return draw.choice([value + 1, value * 2 + 1, -value - 1, value + 10**9, value / 3 + 0.1])
    if isinstance(value, str) and draw.random() < 0.5:
        return draw.choice([value + "x", value[::-1] + "y", "relu" if value != "relu" else "gelu"])
    return draw.choice(
        [v for v in (None, 0, 7, -1, 1e400, "", "evil/kernel", [], {}) if v != value]
    )


def mutate(folder: Path, draw: random.Random) -> str:
    """Damage a folder in one of many ways; says what was done."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "README.md")
    kind = draw.choice(
        ["flip", "flip", "cut", "remove", "swap", "add", "empty", "json", "json", "json"]
    )
    file = draw.choice(files)
    content = file.read_bytes()
    if kind == "json":
        file = draw.choice([path for path in files if path.suffix == ".json"])
        values = json.loads(file.read_text())
        path = draw.choice(leaves(values))
        at = values
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = other_value(at[path[-1]], draw)
        file.write_text(json.dumps(values))
        return f"{file.name}: {path} is {at[path[-1]]!r}"
    if kind == "flip":
        i = draw.randrange(len(content))
        file.write_bytes(
            content[:i] + bytes([content[i] ^ draw.randrange(1, 256)]) + content[i + 1 :]
        )
    elif kind == "cut":
        file.write_bytes(content[: draw.randrange(len(content))])
    elif kind == "remove":
        file.unlink()
    elif kind == "swap":
        second = draw.choice([path for path in files if path != file])
        file.write_bytes(second.read_bytes())
        second.write_bytes(content)
    elif kind == "add":
        names = ["added_tokens.json", "special_tokens_map.json", "adapter_config.json", "notes.txt"]
        (folder / draw.choice(names)).write_text(
            draw.choice(["", "{}", '{"bob": 5}', '{"unk_token": "a"}'])
        )
    else:
        file.write_bytes(b"")
    return f"{kind} of {file.name}"


def mutations(wanted: int, backbone: str) -> list[str]:
    """Load damaged folders; 'lost' is other predictions, an error of another kind, or 5 seconds."""
    from skdice import DiceSequenceClassifier

    draw, lost, refused, slowest = random.Random(0), 0, 0, 0.0
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        models = fitted(backbone)
        for i, model in enumerate(models):
            model.save_pretrained(home / f"{i}")
        for i in range(wanted):
            model, damaged = models[i % len(models)], home / "damaged"
            shutil.rmtree(damaged, ignore_errors=True)
            shutil.copytree(home / f"{i % len(models)}", damaged)
            what = mutate(damaged, draw)
            outcome, begun = "", time.perf_counter()
            try:
                read = DiceSequenceClassifier.from_pretrained(damaged)
                outcome = "" if answer(read) == answer(model) else "predicts otherwise"
            except ValueError as error:
                refused += 1
                outcome = "" if str(damaged) in str(error) else f"does not name the folder: {error}"
            except Exception as error:
                outcome = repr(error)
            seconds = time.perf_counter() - begun
            slowest = max(slowest, seconds)
            if outcome or seconds > 5:
                print(f"lost: {what}: {outcome} ({seconds:.1f} s)", file=sys.stderr)
                lost += 1
    what = (
        f"damage to a saved folder ({refused} refused, {wanted - refused - lost} loaded as before, "
        f"slowest {slowest:.1f} s)"
    )
    return [what, str(wanted), str(lost)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=280)
    parser.add_argument("--mutations", type=int, default=400)
    args = parser.parse_args()
    print("| what | tried | survived | lost |\n|---|---:|---:|---:|", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        backbone = small_backbone(Path(temporary))
        for run in (
            lambda: kills(args.kills, backbone),
            lambda: killed_files(args.kills),
            lambda: mutations(args.mutations, backbone),
        ):
            what, tried, lost = run()
            failed += int(lost)
            print(f"| {what} | {tried} | {int(tried) - int(lost)} | {lost} |", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
