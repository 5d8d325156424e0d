"""What tests of commands share."""

from __future__ import annotations

import re

import pytest

from tests.cli.running import run, said


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Give the counts that `skdice train` prints of a file, or its message; nothing is trained."""

    def stop(*args, **kwargs):
        raise ValueError("the file was read")

    monkeypatch.setattr("skdice.cli._common.estimator_of", stop)

    def counts_or_message(path, *options):
        output = said(run("train", path, "--out", tmp_path / "never", *options))
        if "the file was read" not in output:
            return output
        counts = re.search(r"; (?:tokens|examples): (.*?)(?:;| error)", output)
        found = re.findall(r"(.*?) (\d+)(?:, |$)", counts[1]) if counts else ()
        return {name: int(n) for name, n in found}

    return counts_or_message
