"""Saved estimators on the Hugging Face hub."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skdice import backbones
from skdice._checks import checked
from skdice.estimators import storage


def local_folder(source: str | Path, revision: str | None = None) -> Path:
    """A folder as it is, or the files of a repository on the hub."""
    if folder := backbones.folder_of(source, revision):
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
        return Path(snapshot_download(name, revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(
            f"{name!r} is no folder, and could not be fetched from the hub "
            f"({type(error).__name__}): check the name, the revision, the network and, for a "
            "private repository, hf auth login"
        ) from error


class Pushed:
    """`push_to_hub` of an estimator that has `save_pretrained`."""

    save_pretrained: Any

    @checked
    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        metrics: dict[str, float] | None = None,
        card: dict[str, Any] | None = None,
        token: str | None = None,
    ) -> str:
        """Upload what `save_pretrained` writes to the Hugging Face hub.

        Parameters
        ----------
        repo_id : str
            Such as ``"ann/town-notes-tagger"``; made if missing.
        private : bool or None, default=None
            Of a repository that is made; None takes the organisation's setting.
        metrics, card : dict or None, default=None
            As in `save_pretrained`; the backbone's license is fetched from the hub.
        token : str or None, default=None
            None is the one that ``hf auth login`` stored.

        Returns
        -------
        str
            The address of the commit.

        Raises
        ------
        NotFittedError, TypeError
            As in `save_pretrained`.
        ValueError
            If `repo_id` is no possible name of a repository.
        """
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError

        check_is_fitted(self)
        if not backbones.is_hub_id(repo_id):
            raise ValueError(
                f"repo_id={repo_id!r} is no possible hub id: give one such as 'ann/tagger'"
            )
        inner: Any = getattr(self, "estimator_", self)
        kind, backbone = type(inner).__name__, str(getattr(inner, "backbone", "."))
        if backbones.is_hub_id(backbone) and not Path(backbone).is_dir():
            # It may be private, or have no card.
            with contextlib.suppress(HfHubHTTPError, OSError):
                hf_hub_download(backbone, "README.md", revision=inner.revision, token=token)
        with tempfile.TemporaryDirectory() as temporary:
            folder = self.save_pretrained(temporary, metrics=metrics, card=card)
            api = HfApi(token=token)
            api.create_repo(repo_id, private=private, exist_ok=True)
            before = api.list_repo_files(repo_id)
            done = api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                commit_message=f"{kind} trained with skdice",
                # As in a folder, a model that was there is replaced as a whole.
                delete_patterns=[n for n in before if storage.is_model_file(n.split("/")[0])],
            )
        return str(done.commit_url)
