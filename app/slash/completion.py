"""Completion of what is typed: slash commands, their arguments, and names after `@`.

`complete` finds what may stand in place of the word before the cursor. It is a function of the text and of
the names that are known, and reads nothing itself.
"""

import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from app.slash.commands import Command
from app.slash.names import near_names
from app.slash.parse import available, matches
from app.slash.sampling import RESET
from app.slash.sources import NAMING, Action
from engine.conversations.branch_sampling import PARAMETERS

Kind = Literal["agent", "branch", "collection", "conversation", "model", "setting", "theme"]
"""What names stand for."""

PATH, SHELL_PATH = "path", "shell path"
"""Words of an argument that are paths: as they are, or in quotes if they have spaces."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "resume": ("conversation",),
    "switch": ("branch",),
    "merge": ("graft|summary|pick", "branch"),
    "system": ("clear",),
    "fork": ("model",),
    "model": ("model", "now"),
    "sampling": ("sampling", "…"),
    "sources": ("|".join(get_args(Action)), "…"),
    "attach": (PATH,),
    "export": (PATH,),
    "import": (PATH,),
    "agents": ("agent", SHELL_PATH, "…"),
    "memory": ("search|forget|export", PATH),
    "serve": ("off",),
    "settings": ("setting",),
    "theme": ("theme",),
    "gc": ("yes",),
}
"""What the words of an argument may be, by command: a kind of name, a path, or one of several words. After
`…` the last one repeats. Commands that are not here take what `Command.choices` says."""

MAX_PATHS = 200
"""Files that are candidates at most, so that a key takes little time in a large folder."""
_AT = re.compile(r"(?<![^\s(\[{])@(?:\"([^\"\n]*)|([^\s\"]*))$")
_CALL = re.compile(r"@(\S+)\s+(\S*)$")
_UNUSABLE = re.compile(r'["\n]')
_LISTED_NEAR = 5


class KnownNames(Protocol):
    """The names that are known now. Never blocks; may begin to read what is asked for."""

    def of(self, kind: Kind) -> Mapping[str, str]:
        """The names of a kind, each with a few words about it."""
        ...

    def in_folder(self, folder: str) -> Sequence[str]:
        """The names in a folder, those of folders with a slash; see `FolderNames`."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text that may stand in place of the word.

    Attributes:
        text: the text.
        note: a few words about it.
        shown: how a list shows it; empty for the text itself.
    """

    text: str
    note: str = ""
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The candidates for the word before the cursor.

    Attributes:
        typed: the word; the candidates replace it.
        candidates: at least one.
        similar: whether none begins with the word, so that these are the nearest.
    """

    typed: str
    candidates: tuple[Candidate, ...]
    similar: bool = False

    @property
    def common(self) -> str:
        """What can be written without a choice: the only candidate, or what all begin with."""
        if len(self.candidates) == 1:
            return self.candidates[0].text
        if self.similar:
            return self.typed
        texts = [one.text for one in self.candidates]
        first = texts[0]
        length = len(os.path.commonprefix([text.casefold() for text in texts]))  # noqa: RUF071
        return first[:length] if length >= len(self.typed) else self.typed


def complete(before: str, names: KnownNames) -> Completion | None:
    """What completes a text.

    Args:
        before: the text before the cursor.
        names: the known names.

    Returns:
        None if there is nothing to complete.
    """
    if found := matches(before):
        return Completion(before, tuple(map(_command, found)))
    if before.startswith("/") and not before.startswith("//"):
        return _argument(before, names)
    return _mention(before, names) or _path_of_call(before, names)


def _command(command: Command) -> Candidate:
    space = " " if command.argument else ""
    shown = f"/{command.name} {command.argument}".rstrip()
    return Candidate(f"/{command.name}{space}", command.help, shown)


# Arguments of commands.


def _argument(before: str, names: KnownNames) -> Completion | None:
    name, space, rest = before[1:].partition(" ")
    command = next((one for one in available("screen") if one.name == name.lower()), None)
    if command is None or not space or "\n" in rest:
        return None
    words = _WORDS.get(command.name) or (("|".join(command.choices),) if command.choices else ())
    if not words:
        return None
    if len(words) == 1:  # the whole argument is one word, which may have spaces
        return _word(words[0], rest.lstrip(), names)
    done, typed = _split(rest)
    if command.name == "sources":
        return _sources_word(done, typed, names)
    if command.name == "memory" and done and done[0] != "export":
        return None
    if len(done) >= len(words) and words[-1] != "…":
        return None
    kinds = [one for one in words if one != "…"]
    return _word(kinds[min(len(done), len(kinds) - 1)], typed, names)


def _split(rest: str) -> tuple[list[str], str]:
    """The words before the last one, and the last one as it is typed, with its open quote."""
    found = re.search(r"(?:\"[^\"]*|'[^']*|(?:[^\s\"']|\\.)*)$", rest)
    typed = found[0] if found else ""
    try:
        return shlex.split(rest[: len(rest) - len(typed)]), typed
    except ValueError:
        return rest.split()[:-1], typed


def _sources_word(done: Sequence[str], typed: str, names: KnownNames) -> Completion | None:
    if not done:
        return _word(_WORDS["sources"][0], typed, names)
    if len(done) == 1:
        named = done[0] == "add" or done[0] in NAMING
        return _word("collection", typed, names) if named else None
    return _word(SHELL_PATH, typed, names) if done[0] in ("add", "remove") else None


def _word(kind: str, typed: str, names: KnownNames) -> Completion | None:
    if kind == PATH:
        return _paths(typed, names, quote=lambda path: path)
    if kind == SHELL_PATH:
        return _paths(typed, names, quote=_in_quotes)
    if kind == "sampling":
        found: Mapping[str, str] = {f"{name}=": "" for name in PARAMETERS} | {RESET: "leaves all"}
    elif kind in get_args(Kind):
        found = names.of(kind)  # type: ignore[arg-type]  # it is one of them
    else:
        found = dict.fromkeys(kind.split("|"), "")
    return _names(typed, found)


def _names(typed: str, names: Mapping[str, str], at: str = "") -> Completion | None:
    """The names that begin with the word, else those that are like it."""
    wanted = typed.casefold()
    found = [name for name in names if name.casefold().startswith(wanted)]
    if found == [typed]:
        return None
    similar = not found and len(typed) > 1
    if similar:
        found = near_names(typed, names, _LISTED_NEAR)
    if not found:
        return None
    rows = tuple(Candidate(f"{at}{name}", names[name], name) for name in found)
    return Completion(f"{at}{typed}", rows, similar)


# Names after `@`.


def _mention(before: str, names: KnownNames) -> Completion | None:
    found = _AT.search(before)
    if found is None:
        return None
    typed = found[1] if found[1] is not None else found[2]
    rows: list[Candidate] = []
    if found[1] is None and "/" not in typed:
        kinds: list[Kind] = ["agent", "collection"] if found.start() == 0 else ["collection"]
        for kind in kinds:
            known = _names(typed, names.of(kind), "@")
            if known is not None and not known.similar:
                rows += known.candidates
    files = _paths(typed, names, quote=_mentioned)
    rows += files.candidates if files is not None else ()
    if not rows and found.start() == 0 and len(typed) > 1:
        return _names(typed, {**names.of("agent"), **names.of("collection")}, "@")
    return Completion(found[0], tuple(rows)) if rows else None


def _path_of_call(before: str, names: KnownNames) -> Completion | None:
    """The first path behind the name of an agent that a message calls."""
    found = _CALL.fullmatch(before)
    if found is None or not found[2] or found[1] not in names.of("agent"):
        return None
    return _paths(found[2], names, quote=lambda path: path)


def _mentioned(path: str) -> str:
    """`@path`, in quotes if it has spaces; a folder's quotes stay open for what follows."""
    if not re.search(r"\s", path):
        return f"@{path}"
    return f'@"{path}' if path.endswith("/") else f'@"{path}"'


def _in_quotes(path: str) -> str:
    if not re.search(r"[\s'\\]", path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


# Paths.


def _paths(typed: str, names: KnownNames, *, quote: Callable[[str], str]) -> Completion | None:
    """The files and folders that begin with a path; hidden ones only behind a point."""
    path = typed.lstrip("\"'")
    folder, slash, start = path.rpartition("/")
    usable = (
        name
        for name in names.in_folder(folder + slash)
        if name.isprintable() and not _UNUSABLE.search(name)
    )
    found = _beginning(start, [name for name in usable if start[:1] == "." or name[0] != "."])
    found = found[:MAX_PATHS]
    if not found or found == [start]:
        return None
    rows = tuple(Candidate(quote(f"{folder}{slash}{name}"), shown=name) for name in found)
    return Completion(typed, rows)


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    """The names that begin so; if none does, those that do if case is ignored."""
    known = list(names)
    wanted = _folded(start)
    return [one for one in known if one.startswith(start)] or [
        one for one in known if _folded(one).startswith(wanted)
    ]


def _folded(name: str) -> str:
    """A name without its case, and with each accented letter as one: file systems may store two."""
    return unicodedata.normalize("NFC", name).casefold()
