"""Reading a call of an agent: `NAME [PATH…] [: TASK]`, as `/agents` and a message with `@NAME` have it."""

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

_NO_PATH = Path("/dev/null/none")


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call: the agent or pipeline, the paths to work on, and the task."""

    name: str
    paths: tuple[str, ...] = ()
    task: str = ""


def read_call(text: str, names: Container[str], *, folder: Path | None = None) -> AgentCall | None:
    """The call in a text, or None if its first word is no agent or pipeline.

    Words that name existing files or folders are paths, up to a colon or the first word that does not.
    What follows is the task.

    Args:
        text: the text after `@` or `/agents `.
        names: the known agents and pipelines.
        folder: what relative paths are relative to; None takes the working folder.
    """
    name, _, rest = text.strip().partition(" ")
    name = name.rstrip(":")
    if name not in names:
        return None
    before, colon, task = rest.partition(": ")
    if rest.startswith(":"):
        before, colon, task = "", ":", rest[1:]
    words = before.split()
    count = 0
    while count < len(words) and _path(words[count], folder).exists():
        count += 1
    paths = tuple(str(_path(word, folder).absolute()) for word in words[:count])
    left = " ".join(words[count:])
    task = f"{left}{colon}{task}" if left else task
    return AgentCall(name, paths, task.strip())


def _path(word: str, folder: Path | None) -> Path:
    """The path of a word; one that no file has, if it cannot be one."""
    try:
        path = Path(word).expanduser()
        path = path if folder is None else folder / path
        path.exists()
    except (OSError, ValueError, RuntimeError):
        return _NO_PATH
    return path
