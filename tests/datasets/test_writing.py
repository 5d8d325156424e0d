"""A file is written whole or not at all, and what is no file is written through."""

from __future__ import annotations

import os
import signal
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skdice.datasets import read_conll, write_conll
from skdice.whole_files import replacing, write_text

POSIX = pytest.mark.skipif(os.name == "nt", reason="devices, pipes and modes of POSIX")
LONG = "n" * 246 + ".txt"  # 250 bytes; a name has 255 at most


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@POSIX
def test_a_device_stays_one(tmp_path):
    link = tmp_path / "null"  # of its own, so that a fault would harm no other program
    link.symlink_to("/dev/null")
    write_conll(link, [["Ann"]], [["B-PER"]])
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert names(tmp_path) == ["null"]


@POSIX
def test_the_reader_of_a_pipe_gets_the_text(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_conll(pipe, [["Ann", "sings"]], [["B-PER", "O"]])
    reader.join(20)
    assert read == ["Ann\tB-PER\nsings\tO\n"]
    assert names(tmp_path) == ["pipe"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@POSIX
def test_a_handle_of_the_process_is_written_to(tmp_path):
    path = tmp_path / "log.txt"
    with path.open("w") as file:
        file.write("before\n")
        file.flush()
        before = path.stat().st_ino
        write_text(Path(f"/dev/fd/{file.fileno()}"), "text")
    assert (path.stat().st_ino, path.read_text()) == (before, "text")


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_link_is_followed_and_the_mode_kept(tmp_path, mode):
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "data" / "a.txt", tmp_path / "link.txt"
    link.symlink_to("data/a.txt")
    write_text(link, "new")  # a link to what is not yet there
    assert target.read_text() == "new"
    target.chmod(mode)
    write_text(link, "changed")
    assert link.is_symlink()
    assert (target.read_text(), link.read_text()) == ("changed", "changed")
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert names(tmp_path) == ["data", "link.txt"]
    assert names(tmp_path / "data") == ["a.txt"]


@POSIX
def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    (tmp_path / "usual").write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_writers_at_once_do_not_mix(tmp_path):
    path = tmp_path / "a.conll"
    start = threading.Barrier(8)

    def write(i):
        start.wait()
        for _ in range(15):
            write_conll(path, [[f"word{i}"] * 200] * 5, [["O"] * 200] * 5)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))  # raises what a writer raised
    X, _ = read_conll(path)
    assert [len(row) for row in X] == [200] * 5
    assert len({word for row in X for word in row}) == 1
    assert names(tmp_path) == ["a.conll"]


@POSIX
def test_a_killed_writer_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "out.tsv"
    write_text(path, "as before")
    child = os.fork()
    if not child:
        with replacing(path) as file:
            file.write("half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.read_text() == "as before"
    left, _ = names(tmp_path)
    assert left.startswith(".out.tsv.writing-")
    with replacing(path) as file:
        file.write("slow")
        write_text(path, "quick")
        assert path.read_text() == "quick"
    assert path.read_text() == "slow"
    assert names(tmp_path) == [left, "out.tsv"]


def test_a_failed_write_changes_nothing(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "as before")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write("half" * (1 // 0))
    assert path.read_text() == "as before"
    assert names(tmp_path) == ["a.txt"]
    with pytest.raises(FileNotFoundError, match=r"no/a\.txt'$"):
        write_text(tmp_path / "no" / "a.txt", "")
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "")


def test_long_names_are_written(tmp_path):
    for _ in range(2):
        write_text(tmp_path / LONG, "text")
    assert names(tmp_path) == [LONG]
