"""Saved estimators on the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from skdice import backbones

__all__ = ["local_folder", "push"]


def local_folder(source: str | Path) -> Path:
    """A folder as it is, or the files of a repository on the hub.

    Raises
    ------
    ValueError
        If `source` is neither a folder nor a possible hub id, or the hub does not have it.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    name = str(source)
    if isinstance(source, Path) or not backbones.is_hub_id(name):
        raise ValueError(
            f"{name!r} is neither a folder nor a possible hub id: check the path, or whether "
            "save_pretrained has run"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(
            f"{name!r} is no folder, and could not be fetched from the hub "
            f"({type(error).__name__}): check the name, the network and, for a private repository, "
            "hf auth login"
        ) from error


def push(
    estimator: Any,
    repo_id: str,
    *,
    private: bool | None,
    metrics: dict[str, float] | None,
    token: str | None,
) -> str:
    """Save an estimator to a temporary folder and upload that as one commit."""
    from huggingface_hub import HfApi

    if not backbones.is_hub_id(repo_id):
        raise ValueError(
            f"repo_id={repo_id!r} is no possible hub id: give one such as 'ann/tagger'"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = estimator.save_pretrained(temporary, metrics=metrics)
        api = HfApi(token=token)
        api.create_repo(repo_id, private=private, exist_ok=True)
        kind = type(estimator).__name__
        done = api.upload_folder(
            repo_id=repo_id, folder_path=folder, commit_message=f"{kind} trained with skdice"
        )
    return str(done.commit_url)
