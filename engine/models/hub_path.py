"""Paths of files in a hub's repository, which are joined to a folder of this machine.

A hub is not trusted: its listing may name any path. A safe one has plain names between slashes, so that it
stays in the folder on every operating system, fits the limits of file systems, and can be printed.
"""

from pathlib import Path

from engine.api.errors import FetchError

MAX_PATH_BYTES = 512
MAX_NAME_BYTES = 200
"""File systems allow 255; huggingface_hub appends up to nine bytes to a name while it downloads."""


def path_problem(path: str) -> str:
    """Why a path cannot be stored, as the end of a sentence that begins with the path; empty if it can be."""
    if not path:
        return "is empty"
    if (
        not path.isprintable()
    ):  # control characters, line breaks, marks that reorder text, lone surrogates
        return "has characters that cannot be printed"
    if "\\" in path:
        return "has a backslash"
    if ":" in path:
        return "has a colon, as drive letters do"
    if path.startswith("/"):
        return "is absolute"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_name_problem, path.split("/"))), "")


def _name_problem(name: str) -> str:
    if not name:
        return "has an empty folder or file name"
    if name == "..":
        return "leaves its folder"
    if name.startswith("."):  # hidden, or `.`; huggingface_hub keeps its own files in `.cache`
        return "has a name that begins with a dot"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"has a name longer than {MAX_NAME_BYTES} bytes"
    return ""


def printable(path: str) -> str:
    """The path in quotes and ASCII, cut after 100 characters, for a sentence about an unsafe one."""
    text = ascii(path)
    return text if len(text) <= 100 else f"{text[:100]}…"


def path_inside(folder: Path, path: str) -> Path:
    """The place of a file below `folder`.

    Raises:
        FetchError: the path is unsafe, or a symbolic link leads out of the folder.
    """
    problem = path_problem(path)
    if problem:
        raise FetchError(f"{printable(path)} cannot be stored: it {problem}.")
    place = folder / path
    if not place.resolve().is_relative_to(folder.resolve()):
        raise FetchError(f"{place} cannot be written: a symbolic link leads out of {folder}.")
    return place
