"""Download of models from a Hugging Face hub.

Only data files on an allow-list are downloaded, all from one commit, which the record stores. Files
for which the hub publishes a SHA-256 are verified; a download of one that broke off goes on where it ended.
`HF_ENDPOINT` selects another hub.
"""

import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download, hf_hub_url
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils._headers import build_hf_headers
from huggingface_hub.utils.tqdm import tqdm

from engine.api.error_text import first_line
from engine.api.errors import FetchError, FetchInterrupted
from engine.models.digest import sha256_of
from engine.models.hub_files import RemoteFile, choose_files
from engine.models.hub_id import HubId
from engine.models.hub_path import path_inside
from engine.models.progress import FetchCancelled, FetchProgress, ProgressCallback

_PARTIAL = ".part"
"""Behind the name of a file that has not arrived whole."""
_MAX_HTTP_BYTES = 50_000_000_000
"""Longer files are not served over plain HTTP; huggingface_hub fetches them in another way."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_from_hub(hub_id: HubId, staging: Path, progress: ProgressCallback) -> tuple[Path, str]:
    """Download a GGUF file, or a directory of safetensors and configs, into the directory `staging`.

    Whole files of the same commit that an interrupted call left in `staging` are not downloaded again, and
    the rest of a partial one is; all else in it is deleted. A `progress` that raises `FetchCancelled` ends
    the download.

    Returns:
        The file (the first of a split model) or directory, and its commit.

    Raises:
        FetchInterrupted: the hub cannot be reached, or a download broke off; what arrived stays.
        FetchError: no such model, no usable file in it, or a damaged download.
    """
    endpoint = os.environ.get("HF_ENDPOINT") or None
    _silence_warnings()
    files: list[RemoteFile] = []
    folder = staging
    try:
        info = HfApi(endpoint=endpoint).model_info(
            hub_id.repository, revision=hub_id.revision or None, files_metadata=True, timeout=30
        )
        revision = info.sha or ""
        if not _COMMIT.fullmatch(revision):  # it becomes the name of a folder
            raise FetchError(f"The hub reports no commit for {hub_id.repository}.")
        files = choose_files(hub_id, [_remote(sibling) for sibling in info.siblings or ()])
        folder = staging / revision
        _keep_only(staging, folder, files)
        try:
            _download(hub_id, revision, files, folder, endpoint, progress)
        finally:  # delete huggingface_hub's own records, which would be part of the model
            shutil.rmtree(folder / ".cache", ignore_errors=True)
    except GatedRepoError as error:
        raise FetchError(
            f"{hub_id.repository} is gated: accept its terms on its page and set a token in HF_TOKEN."
        ) from error
    except RevisionNotFoundError as error:
        raise FetchError(
            f"{hub_id.repository} has no branch, tag or commit {hub_id.revision}."
        ) from error
    except RepositoryNotFoundError as error:
        raise FetchError(
            f"The hub has no model {hub_id.repository}, or the model is private{_no_file(hub_id)}."
        ) from error
    except (FetchError, FetchCancelled):
        raise
    except Exception as error:  # huggingface_hub also raises its HTTP library's errors
        kept = sum(_is_whole(folder, file) for file in files)
        more = f"; {kept} of {len(files)} files arrived, and the same command fetches the others"
        if not kept:
            begun = any(_partial(folder / file.path).is_file() for file in files)
            more = "; the same command goes on where it ended" if begun else _no_file(hub_id)
        raise FetchInterrupted(
            f"{hub_id} could not be fetched: {first_line(error)}{more}."
        ) from error
    first = folder / files[0].path
    return (first if first.suffix.lower() == ".gguf" else folder), revision


def _silence_warnings() -> None:
    """Keep huggingface_hub from printing each failed attempt of a download: the last one's error is raised.

    `HF_HUB_VERBOSITY` shows them.
    """
    if "HF_HUB_VERBOSITY" not in os.environ:
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)


def _no_file(hub_id: HubId) -> str:
    """The end of an error's sentence for an id that may be the mistyped path of a file."""
    if hub_id.choice or not hub_id.repository.lower().endswith(".gguf"):
        return ""
    return "; there is no such file here, either"


def _remote(sibling: Any) -> RemoteFile:
    return RemoteFile(
        path=sibling.rfilename,
        size=sibling.size or 0,
        sha256=None if sibling.lfs is None else sibling.lfs.sha256,
    )


def _keep_only(staging: Path, folder: Path, files: list[RemoteFile]) -> None:
    """Delete what is in `staging`, except those of `files` that are whole or partial in `folder`."""
    whole = {file.path for file in files if _is_whole(folder, file)}
    wanted = {folder / path for path in whole}
    partial = (_partial(folder / file.path) for file in files if file.path not in whole)
    wanted |= {path for path in partial if not path.is_symlink()}
    for parent, folders, names in os.walk(staging, topdown=False):
        for path in (Path(parent, name) for name in (*names, *folders)):
            if path.is_symlink() or not path.is_dir():
                if path not in wanted:
                    path.unlink()
            elif not any(path.iterdir()):
                path.rmdir()


def _partial(path: Path) -> Path:
    """Where a file is while it arrives."""
    return path.with_name(path.name + _PARTIAL)


def _is_whole(folder: Path, file: RemoteFile) -> bool:
    """Whether a file has arrived: it is renamed into place when it is complete."""
    path = folder / file.path
    return path.is_file() and not path.is_symlink() and path.stat().st_size == file.size


def _download(
    hub_id: HubId,
    revision: str,
    files: list[RemoteFile],
    folder: Path,
    endpoint: str | None,
    progress: ProgressCallback,
) -> None:
    total = sum(file.size for file in files)
    before = 0
    for file in files:
        path = path_inside(folder, file.path)
        if not _is_whole(folder, file):
            bar = _reporting_bar(file.path, before, total, progress)
            if file.sha256 is None or file.size > _MAX_HTTP_BYTES:
                hf_hub_download(
                    hub_id.repository,
                    file.path,
                    revision=revision,
                    local_dir=folder,
                    endpoint=endpoint,
                    tqdm_class=bar,
                )
            else:
                url = hf_hub_url(hub_id.repository, file.path, revision=revision, endpoint=endpoint)
                _download_rest(url, file, path, bar)
        if file.sha256 is not None:
            digest = sha256_of(path, progress=progress)
            if digest != file.sha256:
                raise FetchError(f"{file.path} has SHA-256 {digest} instead of {file.sha256}.")
        before += file.size


def _download_rest(url: str, file: RemoteFile, path: Path, bar: type[Any]) -> None:
    """Download what is missing of a file whose digest is known, so that a wrong beginning is noticed.

    huggingface_hub 2 deletes what has arrived when a download breaks off, and begins again at the next call.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    with partial.open("ab") as target:
        if target.tell() > file.size:
            target.truncate(0)
        http_get(
            url,
            target,
            resume_size=target.tell(),
            headers=build_hf_headers(),
            expected_size=file.size,
            tqdm_class=bar,
        )
        target.flush()
        os.fsync(target.fileno())
    partial.replace(path)


def _reporting_bar(item: str, before: int, total: int, progress: ProgressCallback) -> type[Any]:
    """A tqdm class, instantiated by huggingface_hub, that draws nothing and reports bytes."""

    class ReportingBar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]
            self.done = before + int(options.get("initial") or 0)

        def update(self, n: float | None = 1) -> None:
            self.done += int(n or 0)
            progress(FetchProgress("download", item, min(self.done, total), total))

    return ReportingBar
