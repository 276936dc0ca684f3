"""Choice of the files to download from a hub's repository: a GGUF model, or one in safetensors.

GGUF files are found in all folders, safetensors and their configuration only at the top. A split GGUF model
counts as one file, its first part, and is downloaded with all others. Vision projectors, which are published
beside the models they belong to, cannot be loaded and are left out.
"""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from engine.api.errors import FetchError
from engine.models.gguf_parts import model_stem, part_names
from engine.models.hub_id import HubId
from engine.models.hub_path import path_problem, printable

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
TOOL_TEMPLATE_FILE = "additional_chat_templates/tool_use.jinja"
"""Where transformers saves a chat template of its own for conversations with tools."""
_MAX_LISTED = 30
"""File names in a sentence; a repository with each usual quantization has about 25."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of the repository: its path, size in bytes, and SHA-256 if the hub publishes one."""

    path: str
    size: int
    sha256: str | None


def choose_files(hub_id: HubId, listing: Iterable[RemoteFile]) -> list[RemoteFile]:
    """The files to download: one GGUF file or all its parts, in order, or those of a safetensors model.

    Every returned path is safe to join to a folder.

    Raises:
        FetchError: no file fits the id, or several do, or a part is missing; or the path of any file of a
            format that can be loaded is unsafe.
    """
    by_path = {file.path: file for file in listing if _is_gguf(file) or _is_of_directory(file)}
    for path in by_path:
        problem = path_problem(path)
        if problem:
            raise FetchError(
                f"{hub_id.repository} lists a file that cannot be stored: {printable(path)} {problem}."
            )
    directory = [file for file in by_path.values() if not _is_gguf(file)]
    has_weights = any(file.path.endswith(".safetensors") for file in directory)
    if not hub_id.choice and has_weights:
        return directory
    ggufs = [path for path, file in by_path.items() if _is_gguf(file) and not _is_projector(path)]
    if not ggufs:
        raise FetchError(_without_gguf(hub_id, has_weights=has_weights))
    parts = part_names(_choose_gguf(hub_id, ggufs))
    for part in parts:
        if part not in by_path:
            raise FetchError(f"{hub_id.repository} lacks {part}, a part of {hub_id}.")
    return [by_path[part] for part in parts]


def gguf_models(sizes: Mapping[str, int]) -> dict[str, int]:
    """The models in GGUF among the files of a repository: the first part's path, and the bytes of all parts.

    Vision projectors, models that lack a part and files that cannot be stored are left out.

    Args:
        sizes: bytes by path.
    """
    usable = {
        path: size
        for path, size in sizes.items()
        if path.lower().endswith(".gguf") and not _is_projector(path) and not path_problem(path)
    }
    models = {part_names(path)[0]: part_names(path) for path in usable}
    return {
        first: sum(usable[part] for part in parts)
        for first, parts in models.items()
        if all(part in usable for part in parts)
    }


def _is_gguf(file: RemoteFile) -> bool:
    return file.path.lower().endswith(".gguf")


def _is_projector(path: str) -> bool:
    return "mmproj" in _file_name(path)  # as llama.cpp names and recognizes them


def _is_of_directory(file: RemoteFile) -> bool:
    if file.path == TOOL_TEMPLATE_FILE:
        return True
    return "/" not in file.path and any(
        fnmatch.fnmatchcase(file.path, pattern) for pattern in _DIRECTORY_FILES
    )


def _without_gguf(hub_id: HubId, *, has_weights: bool) -> str:
    if has_weights:
        return (
            f"{hub_id.repository} contains no GGUF files, only safetensors: "
            f"request it as {hub_id.repository}."
        )
    return f"{hub_id.repository} contains neither GGUF files nor, outside of folders, safetensors."


def _choose_gguf(hub_id: HubId, ggufs: Iterable[str]) -> str:
    """The path that was asked for; of a split model, the first part's."""
    models = sorted({part_names(path)[0] for path in ggufs})
    matching = _matching(hub_id.choice, models)
    if len(matching) == 1:
        return matching[0]
    problem = "Several GGUF files match" if matching else "No GGUF file matches"
    offered = matching or models
    paths = ", ".join(offered[:_MAX_LISTED])
    if len(offered) > _MAX_LISTED:
        paths += f" and {len(offered) - _MAX_LISTED} more"
    raise FetchError(
        f"{problem} {hub_id}: request one as {hub_id.repository}:FILE, where FILE is one of {paths}."
    )


def _matching(choice: str, models: list[str]) -> list[str]:
    """The models that `choice` names, by the first of these rules that fits any of them."""
    wanted = choice.lower()
    rules: tuple[Callable[[str], bool], ...] = (
        lambda path: not choice or path == choice,
        lambda path: path.lower() == wanted,
        lambda path: _file_name(path) == wanted,
        lambda path: _has_tag(model_stem(_file_name(path)), wanted),
        lambda path: _is_in_folder(path.lower(), wanted),
    )
    for rule in rules:
        matching = [path for path in models if rule(path)]
        if matching:
            return matching
    return []


def _file_name(path: str) -> str:
    return PurePosixPath(path).name.lower()


def _has_tag(stem: str, tag: str) -> bool:
    """Whether the name ends in the whole tag: Q4_K does not match Q4_K_M."""
    return stem == tag or stem.endswith((f"-{tag}", f".{tag}", f"_{tag}"))


def _is_in_folder(path: str, folder: str) -> bool:
    """Whether one of the folders around the file is `folder`, or its name ends in that tag."""
    return any(
        str(parent) == folder or str(parent).endswith(f"/{folder}") or _has_tag(parent.name, folder)
        for parent in PurePosixPath(path).parents
    )
