"""The processes of this host, and which of them have ended."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def this_process() -> str:
    """Name this process by host, number and start, so that no other has the same name."""
    return f"{_host()} {os.getpid()} {_start(os.getpid())}"


def has_ended(process: str) -> bool:
    """Tell whether a process that `this_process` named ran on this host and runs no longer.

    Nothing is known of other hosts, nor on a system without ``/proc`` of a number that another
    process has today: such a process counts as running.
    """
    host, number, start = process.rsplit(" ", 2)
    return host == _host() and _start(int(number)) != start


@cache
def _host() -> str:
    """The host, and on Linux its boot and the container, within which a number means a process."""
    parts = [socket.gethostname()]
    if Path("/proc/self/stat").exists():
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return "/".join(parts)


def _start(number: int) -> str:
    """When a process of this host began, or "runs" where that is not known; "" of none."""
    if os.name == "nt":  # where a signal of 0 would end the process
        return "runs"
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:  # of another user
            pass
        return "runs"
    try:
        # The name before the last bracket may hold anything.
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]  # one that is dead may wait for its parent
