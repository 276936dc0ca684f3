"""Which files a run may be asked to read."""

from collections.abc import Sequence
from pathlib import Path

from agents.api.errors import InvalidTask


def paths_beneath(paths: Sequence[str], roots: Sequence[Path]) -> tuple[Path, ...]:
    """The paths, relative ones beneath the first root; links are followed before they are compared.

    Args:
        paths: as a request names them.
        roots: resolved folders; without any no path is allowed.

    Raises:
        InvalidTask: a path is outside of all roots.
    """
    if paths and not roots:
        raise InvalidTask(
            "Agents may read no files here: start the server with --agents-root FOLDER, or send "
            "the text as `document`."
        )
    for path in paths:
        if not any((roots[0] / path).resolve().is_relative_to(root) for root in roots):
            folders = ", ".join(str(root) for root in roots)
            raise InvalidTask(f"{path} is outside of what agents may read: {folders}.")
    return tuple(roots[0] / path for path in paths)
