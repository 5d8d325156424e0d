"""A folder is replaced whole: what a reader finds, what is kept, what is refused."""

from __future__ import annotations

import errno
import importlib.util
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from skdice import DiceSequenceClassifier, DiceTokenClassifier
from skdice.folders import refuse_left, replaced

SAVES = Path(__file__).parents[1] / "examples" / "benchmarks" / "saves.py"
spec = importlib.util.spec_from_file_location("saves", SAVES)
saves = importlib.util.module_from_spec(spec)
spec.loader.exec_module(saves)


def write(folder, text, is_ours=lambda name: name == "model"):
    with replaced(folder, is_ours) as new:
        (new / "model").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_new_replaced_and_nothing_is_left(tmp_path):
    for text in ("one", "two", "three"):
        write(tmp_path / "parent" / "m", text)
        assert (tmp_path / "parent" / "m" / "model").read_text() == text
        assert names(tmp_path / "parent") == ["m"]


def test_what_others_put_into_it_is_kept(tmp_path):
    folder = tmp_path / "m"
    write(folder, "one")
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "objects" / "ab").write_text("blob")
    (folder / "notes.md").write_text("mine")
    (folder / "model-of-ours").write_text("old")
    (folder / "link").symlink_to("notes.md")
    (folder / "broken").symlink_to("nowhere")
    folder.chmod(0o750)
    with (folder / "log.txt").open("w") as log:  # somebody goes on writing
        write(folder, "two", lambda name: name.startswith("model"))
        log.write("a line")
    assert names(folder) == [".git", "broken", "link", "log.txt", "model", "notes.md"]
    assert (folder / ".git" / "objects" / "ab").read_text() == "blob"
    assert (folder / "link").is_symlink()
    assert (folder / "link").read_text() == "mine"
    assert (folder / "log.txt").read_text() == "a line"
    assert folder.stat().st_mode & 0o777 == 0o750


def test_copies_do_where_links_do_not(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.EPERM, "no links here")

    write(tmp_path / "m", "one")
    (tmp_path / "m" / "notes.md").write_text("mine")
    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "m", "two")
    assert (tmp_path / "m" / "notes.md").read_text() == "mine"


@pytest.mark.parametrize(
    "error", [KeyError("x"), KeyboardInterrupt(), OSError(errno.EIO, "broken")]
)
def test_an_error_changes_nothing(tmp_path, error):
    write(tmp_path / "m", "one")

    def half():
        with replaced(tmp_path / "m", lambda name: True) as new:
            (new / "model").write_text("half")
            raise error

    with pytest.raises(type(error)):
        half()
    assert names(tmp_path) == ["m"]
    assert (tmp_path / "m" / "model").read_text() == "one"


def test_a_rename_that_fails_is_undone(tmp_path, monkeypatch):
    write(tmp_path / "m", "one")
    rename = Path.rename

    def fails(self, target):
        if ".new-" in self.name:
            raise OSError(errno.EXDEV, "another disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match=r"m' cannot be written, and is as it was"):
        write(tmp_path / "m", "two")
    assert names(tmp_path) == ["m"]
    assert (tmp_path / "m" / "model").read_text() == "one"


STEPS = [(Path, "mkdir"), (Path, "rename"), (os, "link"), (shutil, "rmtree")]


def killed_save(folder, step):
    """Save in a process that dies before its call number `step`; True if it came to its end."""
    child = os.fork()
    if not child:
        calls = iter(range(1, 100))

        def dying(real):
            def call(*args, **kwargs):
                if next(calls) == step:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        for owner, name in STEPS:
            setattr(owner, name, dying(getattr(owner, name)))
        write(folder, "two")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_save_that_is_killed_at_any_step_loses_nothing(tmp_path):
    folder, found = tmp_path / "m[1]", []
    for step in range(1, 100):
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, "one")
        (folder / "notes.md").write_text("mine")
        finished = killed_save(folder, step)
        if folder.exists():
            refuse_left(folder)
            found.append((folder / "model").read_text())
        else:
            with pytest.raises(ValueError, match=r"not there, as a save is .* or was killed") as e:
                refuse_left(folder)
            for kind, text in ((".old-", "one"), (".new-", "two")):
                (left,) = tmp_path.glob(f"*{kind}*")
                assert str(left) in str(e.value)
                assert (left / "model").read_text() == text
                assert (left / "notes.md").read_text() == "mine"
            found.append("both")
        write(folder, "three")
        assert (folder / "model").read_text() == "three"
        assert not list(tmp_path.glob("*.old-*"))
        for left in tmp_path.glob("*.new-*"):
            shutil.rmtree(left)
        if finished:
            break
    assert list(dict.fromkeys(found)) == ["one", "both", "two"]


def test_estimators_name_what_a_killed_save_left(tiny_backbone, sentences, tmp_path):
    model = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    folder = model.fit(*sentences).save_pretrained(tmp_path / "m")
    folder.rename(tmp_path / "m.old-0a1b2c3d")
    for read in (
        DiceTokenClassifier.from_pretrained,
        DiceTokenClassifier.from_transformers,
        lambda source: model.set_params(backbone=str(source)).fit(*sentences),
    ):
        with pytest.raises(ValueError, match=r"m\.old-0a1b2c3d'.* rename one of them to 'm'"):
            read(folder)


# ---- where it is


def test_paths_of_every_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for i, path in enumerate(["real/", "./real", Path("real"), f"{tmp_path}//real", "link"]):
        write(path, str(i))
        assert (tmp_path / "real" / "model").read_text() == str(i)
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == ["link", "real"]
    (tmp_path / "dangling").symlink_to("later")
    write("dangling", "new")
    assert (tmp_path / "later" / "model").read_text() == "new"


@pytest.mark.parametrize("path", ["", ".", "..", "here/..", "/", "~"])
def test_folders_of_other_things_are_refused(tiny_backbone, sentences, path, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    model = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(*sentences)
    for folder in (path, Path(path)):
        with pytest.raises(ValueError, match=r"^folder=.* (must be a path|directory, or holds it)"):
            model.save_pretrained(folder)
    assert names(tmp_path) == ["here"]


def test_what_is_no_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="file' is a file"):
        write(tmp_path / "file", "x")
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) == str(tmp_path / "disk"))
    with pytest.raises(ValueError, match="is a mount point"):
        write(tmp_path / "disk", "x")
    assert names(tmp_path) == ["file"]


def test_a_parent_that_cannot_be_written(tmp_path, monkeypatch):
    write(tmp_path / "m", "one")

    def refuse(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    with monkeypatch.context() as patch:  # whoever runs the tests as root may write everywhere
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(PermissionError, match=r"m' cannot be written, and is as it was"):
            write(tmp_path / "m", "two")
    assert (tmp_path / "m" / "model").read_text() == "one"


@pytest.mark.parametrize("room", [10, 3_000, 20_000])
def test_a_full_disk_is_an_oserror_and_keeps_the_old_model(tiny_backbone, room, tmp_path):
    """A limit on the size of files fails in each library as a full disk does."""
    models = [
        DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=seed).fit(
            ["free money", "lunch today"] * 2, [1, 0] * 2
        )
        for seed in (0, 1)
    ]
    folder = models[0].save_pretrained(tmp_path / "m")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match=r"m' cannot be written, and is as it was") as caught:
            models[1].save_pretrained(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert names(tmp_path) == ["m"]


# ---- saved estimators


def test_a_card_of_others_is_kept(tiny_backbone, sentences, tmp_path):
    folder = tmp_path / "m"
    model = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(*sentences).save_pretrained(folder)
    card = (folder / "README.md").read_text()
    model.save_pretrained(folder, metrics={"F1": 0.5})
    assert "| `F1` | 0.5 |" in (folder / "README.md").read_text()
    (folder / "README.md").write_text("My own words")
    for _ in range(2):
        model.save_pretrained(folder)
        assert (folder / "README.md").read_text() == "My own words"
        assert (folder / "MODEL_CARD.md").read_text() == card
        DiceTokenClassifier.from_pretrained(folder)
    (folder / "README.md").unlink()
    model.save_pretrained(folder)
    assert (folder / "README.md").read_text() == card
    assert not (folder / "MODEL_CARD.md").exists()


def test_a_folder_under_git_stays_one(tiny_backbone, sentences, tmp_path):
    model = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    folder = model.fit(*sentences).save_pretrained(tmp_path / "m")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    model.partial_fit(*sentences).save_pretrained(folder)
    done = subprocess.run([*git, "status", "--short"], check=True, capture_output=True, text=True)
    assert "M model.safetensors" in done.stdout
    subprocess.run([*git, "fsck", "--strict"], check=True, capture_output=True)


@pytest.mark.filterwarnings("ignore")
def test_kills_leave_the_old_model_or_the_new(tiny_backbone):
    """The short form of examples/benchmarks/saves.py."""
    _, tried, lost = saves.kills(8, tiny_backbone)
    assert (tried, lost) == ("8", "0")


@pytest.mark.filterwarnings("ignore")
def test_damaged_folders_load_as_before_or_are_refused(tiny_backbone):
    _, tried, lost = saves.mutations(30, tiny_backbone)
    assert (tried, lost) == ("30", "0")
