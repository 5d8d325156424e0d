"""Threads of the command: those that wait leave their core to others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import sys
import skdice.cli
assert "torch" not in sys.modules  # which reads it as it is loaded
sys.argv = ["skdice", "--version"]
try:
    skdice.cli.main()
except SystemExit:
    import os
    print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "found"), [(None, "passive"), ("active", "active")])
def test_threads_that_wait_give_their_core_back(given, found):
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    env |= {"OMP_WAIT_POLICY": given} if given else {}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True)
    assert done.stdout.split()[-1] == found, done.stderr
