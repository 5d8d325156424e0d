"""Does a fit survive kills, many cycles and threads, and does a file that is written?

    python faults.py                     # about 10 minutes on two cores
    python faults.py --kills 4 --cycles 20

Prints a table of what was tried, what survived and what was lost.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

CHILD = """
import sys
from skdice import DiceTokenClassifier
from skdice.datasets import load_town_notes
from skdice._digest import digest

X, y = load_town_notes(subset="train")
folder = sys.argv[1] if len(sys.argv) > 1 else None
tagger = DiceTokenClassifier(
    loss="dsc", max_epochs=3, batch_size=16, frozen=4, lr=5e-4, random_state=0,
    early_stopping=True, checkpoint_dir=folder, checkpoint_every=0,
)
print("begun", flush=True)
print(digest(tagger.fit(X, y).net_.module_.state_dict()), flush=True)
"""


def child(*args: str, code: str = CHILD) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-W", "ignore", "-c", code, *args]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def kills(wanted: int) -> list[str]:
    """Fits that are killed again and again end with the weights of one that was not."""
    whole = child()
    whole.stdout.readline()
    started = time.perf_counter()
    expected = whole.communicate()[0].strip()
    seconds = time.perf_counter() - started
    draw, done, fits, lost = random.Random(0), 0, 0, 0
    while done < wanted:
        with tempfile.TemporaryDirectory() as folder:
            while True:
                process = child(folder)
                process.stdout.readline()
                if done < wanted:
                    time.sleep(draw.uniform(0, seconds))
                    if process.poll() is None:
                        process.send_signal(signal.SIGKILL)
                        process.communicate()
                        done += 1
                        continue
                found = process.communicate()[0].strip()
                fits, lost = fits + 1, lost + (found != expected)
                break
    return [f"SIGKILL at a random moment ({fits} fits of {seconds:.0f} s)", str(done), str(lost)]


SEARCH = """
import sys, time
from optuna.distributions import FloatDistribution
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from skdice.model_selection import LossSearchCV

class Slow(LogisticRegression):
    def fit(self, X, y):
        time.sleep(0.1)
        return super().fit(X, y)

print("begun", flush=True)
X, y = make_classification(60, weights=[0.8], random_state=0)
space = {"C": FloatDistribution(1e-3, 10.0, log=True)}
search = LossSearchCV(
    Slow(), space, n_trials=30, cv=2, storage=sys.argv[1], study_name="s", random_state=0
)
search.fit(X, y)
print(len(search.cv_results_["params"]), flush=True)
"""


def killed_searches(wanted: int) -> list[str]:
    """Searches that are killed and started again end with as many scores as one that was not."""
    draw, done, fits, lost = random.Random(0), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        whole = child(f"{folder}/whole.db", code=SEARCH)
        whole.stdout.readline()
        started = time.perf_counter()
        expected = whole.communicate()[0]
        seconds = time.perf_counter() - started
        while done < wanted:
            fits += 1
            for _ in range(min(2, wanted - done)):
                process = child(f"{folder}/{fits}.db", code=SEARCH)
                process.stdout.readline()
                time.sleep(draw.uniform(0, seconds))
                done += process.poll() is None
                process.send_signal(signal.SIGKILL)
                process.communicate()
            found = child(f"{folder}/{fits}.db", code=SEARCH).communicate()[0]
            lost += found.removeprefix("begun\n") != expected
    return [f"SIGKILL in a search ({fits} searches of {seconds:.0f} s)", str(done), str(lost)]


def cycles(wanted: int) -> list[str]:
    """Memory and open files over many fits in one process."""
    from skdice import DiceTokenClassifier
    from skdice.datasets import load_town_notes

    X, y = (rows[:8] for rows in load_town_notes(subset="train"))
    memory, handles = [], []
    for _ in range(wanted):
        model = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
        model.predict(X)
        del model
        gc.collect()
        memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024)
        handles.append(len(os.listdir("/proc/self/fd")))
    half = slice(wanted // 2, None)  # the first half fills caches
    at = np.arange(wanted)[half]
    slopes = [np.polyfit(at, np.array(values)[half], 1)[0] for values in (memory, handles)]
    what = (
        f"fit and predict ({slopes[0]:+.3f} MiB and {slopes[1]:+.4f} handles a cycle in the second "
        f"half, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB)"
    )
    return [what, str(wanted), str(int(slopes[0] > 0.5 or slopes[1] > 0.01))]


def threads(wanted: int) -> list[str]:
    """Predictions of eight threads against those of one."""
    from skdice import DiceTokenClassifier
    from skdice.datasets import load_town_notes

    X, y = load_town_notes(subset="dev")
    model = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
    parts = [X[i : i + 8] for i in range(0, 64, 8)]
    alone = [list(map(list, model.predict(part))) for part in parts]
    lost = 0
    with ThreadPoolExecutor(8) as pool:
        for _ in range(wanted):
            together = [list(map(list, rows)) for rows in pool.map(model.predict, parts)]
            lost += together != alone
    return ["predict from 8 threads", str(wanted), str(lost)]


def writers(wanted: int) -> list[str]:
    """Files that two writers share, devices, pipes, links and modes."""
    from skdice.datasets import write_conll

    def write(path: Path, word: str) -> None:
        write_conll(path, [[word] * 50] * 20, [["O"] * 50] * 20)

    def whole(text: str, words: str) -> bool:
        return any(text == "\n".join([f"{word}\tO\n" * 50] * 20) for word in words)

    def attempt(i: int, folder: Path) -> bool:
        file, kind = folder / "file.conll", i % 5
        write(file, "a")
        if kind == 0:  # eight threads, one target
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(write, [file] * 8, "abcdefgh"))
            return whole(file.read_text(), "abcdefgh")
        if kind == 1:  # by a link of our own, so that a fault harms nobody else
            (folder / "null").symlink_to(os.devnull)
            write(folder / "null", "b")
            return (folder / "null").is_symlink() and Path(os.devnull).is_char_device()
        if kind == 2:
            os.mkfifo(folder / "pipe")
            read: list[str] = []
            reader = threading.Thread(
                target=lambda: read.append((folder / "pipe").read_text()), daemon=True
            )
            reader.start()
            write(folder / "pipe", "b")
            reader.join(30)
            return (folder / "pipe").is_fifo() and len(read) == 1 and whole(read[0], "b")
        if kind == 3:
            (folder / "link").symlink_to("file.conll")
            write(folder / "link", "b")
            return (folder / "link").is_symlink() and whole(file.read_text(), "b")
        mode = random.Random(i).choice([0o600, 0o640, 0o644, 0o664, 0o755])
        file.chmod(mode)
        write(file, "b")
        return file.stat().st_mode & 0o777 == mode and whole(file.read_text(), "b")

    lost = 0
    for i in range(wanted):
        with tempfile.TemporaryDirectory() as folder:
            try:
                kept = attempt(i, Path(folder))
                kept &= not any(".writing-" in path.name for path in Path(folder).iterdir())
            except OSError as error:
                print(f"lost: {error!r}", file=sys.stderr)
                kept = False
            lost += not kept
    return ["files written by threads at once, to devices, pipes, links, modes", str(wanted),
            str(lost)]  # fmt: skip


def hostile() -> list[str]:
    """Every hostile value at every parameter of every public callable."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.conftest import build_tiny_backbone
    from tests.hostile.harness import harness, table
    from tests.hostile.surface import targets

    results = []
    with tempfile.TemporaryDirectory() as folder:
        backbone = build_tiny_backbone(str(Path(folder) / "backbone"))
        (Path(folder) / "work").mkdir()
        with harness(Path(folder) / "work", backbone) as attacker:
            for target in targets():
                of_target = attacker.attack(target)
                results += of_target
                for result in of_target:
                    if result.outcome not in ("refused", "legal"):
                        print(result, file=sys.stderr)
    print(table(results), file=sys.stderr)
    lost = sum(result.outcome not in ("refused", "legal") for result in results)
    return ["hostile values at public parameters", str(len(results)), str(lost)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--writes", type=int, default=200)
    args = parser.parse_args()
    print("| what | tried | survived | lost |\n|---|---:|---:|---:|", flush=True)
    failed = 0
    for run in (
        lambda: kills(args.kills),
        lambda: killed_searches(args.searches),
        lambda: cycles(args.cycles),
        lambda: threads(args.threads),
        lambda: writers(args.writes),
        hostile,
    ):
        what, tried, lost = run()
        failed += int(lost)
        print(f"| {what} | {tried} | {int(tried) - int(lost)} | {lost} |", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
