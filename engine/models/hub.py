"""Download of models from a Hugging Face hub.

Only data files on an allow-list are downloaded, all from one commit, which the record stores. Files
for which the hub publishes a SHA-256 are verified. `HF_ENDPOINT` selects another hub.
"""

import fnmatch
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from huggingface_hub.utils.tqdm import tqdm

from engine.api.error_text import first_line
from engine.api.errors import FetchError
from engine.models.digest import sha256_of
from engine.models.gguf_parts import model_stem, part_names
from engine.models.hub_id import HubId
from engine.models.progress import FetchProgress, ProgressCallback

_DIRECTORY_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-?????-of-?????.safetensors",
)


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """A file of the repository: its name, size in bytes, and SHA-256 if the hub publishes one."""

    name: str
    size: int
    sha256: str | None


def fetch_from_hub(hub_id: HubId, staging: Path, progress: ProgressCallback) -> tuple[Path, str]:
    """Download a GGUF file, or a directory of safetensors and configs, into `staging`.

    Returns:
        The file (the first of a split model) or directory, and its commit.

    Raises:
        FetchError: no network, no such model, no usable file in it, or a damaged download.
    """
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        info = HfApi(endpoint=endpoint).model_info(
            hub_id.repository, files_metadata=True, timeout=30
        )
        revision = info.sha
        if not revision:
            raise FetchError(f"The hub reports no commit for {hub_id.repository}.")
        files = _choose(hub_id, [_remote(sibling) for sibling in info.siblings or ()])
        folder = staging / "model"
        _download(hub_id, revision, files, folder, endpoint, progress)
    except GatedRepoError as error:
        raise FetchError(
            f"{hub_id.repository} is gated: accept its terms on its page and set a token in HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise FetchError(
            f"The hub has no model {hub_id.repository}, or the model is private."
        ) from error
    except FetchError:
        raise
    except Exception as error:  # huggingface_hub also raises its HTTP library's errors
        raise FetchError(f"{hub_id} could not be fetched: {first_line(error)}.") from error
    if files[0].name.lower().endswith(".gguf"):
        return folder / files[0].name, revision
    return folder, revision


def _remote(sibling: Any) -> _RemoteFile:
    return _RemoteFile(
        name=sibling.rfilename,
        size=sibling.size or 0,
        sha256=None if sibling.lfs is None else sibling.lfs.sha256,
    )


def _choose(hub_id: HubId, files: list[_RemoteFile]) -> list[_RemoteFile]:
    """The files to download: one GGUF file or all its parts, or those of a safetensors model."""
    top = [file for file in files if file.name == Path(file.name).name]
    ggufs = [file for file in top if file.name.lower().endswith(".gguf")]
    chosen = [
        file
        for file in top
        if any(fnmatch.fnmatchcase(file.name, pattern) for pattern in _DIRECTORY_FILES)
    ]
    if not hub_id.choice and any(file.name.endswith(".safetensors") for file in chosen):
        return chosen
    if not ggufs:
        raise FetchError(f"{hub_id.repository} contains neither safetensors nor GGUF files.")
    return _with_other_parts(hub_id, _choose_gguf(hub_id, ggufs), ggufs)


def _with_other_parts(
    hub_id: HubId, chosen: _RemoteFile, ggufs: list[_RemoteFile]
) -> list[_RemoteFile]:
    by_name = {file.name: file for file in ggufs}
    parts = part_names(chosen.name)
    for name in parts:
        if name not in by_name:
            raise FetchError(f"{hub_id.repository} lacks {name}, a part of {hub_id}.")
    return [by_name[name] for name in parts]


def _choose_gguf(hub_id: HubId, ggufs: list[_RemoteFile]) -> _RemoteFile:
    """The file that was asked for; the first of a split model, which counts as one file."""
    ggufs = [file for file in ggufs if file.name == part_names(file.name)[0]]
    wanted = hub_id.choice.lower()
    exact = [file for file in ggufs if file.name.lower() == wanted]
    matching = exact or [file for file in ggufs if _has_tag(file.name.lower(), wanted)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(sorted(file.name for file in matching or ggufs)[:12]) or "none"
    problem = "Several GGUF files match" if matching else "No GGUF file matches"
    raise FetchError(
        f"{problem} {hub_id}: request one as {hub_id.repository}:FILE, where FILE is one of {names}."
    )


def _has_tag(file_name: str, tag: str) -> bool:
    """Whether the name ends in the whole tag: Q4_K does not match Q4_K_M."""
    stem = model_stem(file_name)
    return not tag or stem == tag or stem.endswith((f"-{tag}", f".{tag}", f"_{tag}"))


def _download(
    hub_id: HubId,
    revision: str,
    files: list[_RemoteFile],
    folder: Path,
    endpoint: str | None,
    progress: ProgressCallback,
) -> None:
    total = sum(file.size for file in files)
    before = 0
    for file in files:
        hf_hub_download(
            hub_id.repository,
            file.name,
            revision=revision,
            local_dir=folder,
            endpoint=endpoint,
            tqdm_class=_reporting_bar(file.name, before, total, progress),
        )
        path = folder / file.name
        if file.sha256 is not None:
            digest = sha256_of(path, progress=progress)
            if digest != file.sha256:
                raise FetchError(f"{file.name} has SHA-256 {digest} instead of {file.sha256}.")
        before += file.size
    _remove_resume_files(folder)


def _remove_resume_files(folder: Path) -> None:
    """Delete the files that huggingface_hub keeps to resume downloads."""
    shutil.rmtree(folder / ".cache", ignore_errors=True)


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
