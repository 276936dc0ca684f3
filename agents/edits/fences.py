"""The fenced code blocks of a Markdown text (CommonMark §4.5), and the files that they name.

A fence names a file in its info string (`python src/holds.py`), in the line above it (`**src/holds.py**`), or
in a comment that is its first line (`# src/holds.py`). A fence that is not closed is left out: its code is
incomplete.
"""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^(?P<indent> *)(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)$")
_PATH = r"(?:[\w.~-]+[/\\])*[\w.-]*\w\.[A-Za-z]\w{0,9}|(?:[\w.-]+/)*(?:Makefile|Dockerfile)"
_WORD = re.compile(rf"(?<![\w/.:~-])(?:{_PATH})(?![\w/-])")
_ONLY_PATH = re.compile(
    rf"^(?:#{{1,6}}\s+)?(?:(?:new |updated |changed )?file(?:name)?\s*:?\s*)?"
    rf"[*_`\"']*(?P<path>{_PATH})[*_`\"']*\s*"
    r"(?:\((?:new|updated|changed)(?: file)?\))?\s*[*_]*:?[*_]*$",
    re.IGNORECASE,
)
_COMMENT = re.compile(
    rf"^\s*(?:#|//|--|;|%|/\*|<!--)\s*(?:file(?:name)?:\s*|path:\s*)?(?P<path>{_PATH})\s*(?:\*/|-->)?\s*$",
    re.IGNORECASE,
)
_INFO_VALUE = re.compile(r"(?:title|file|filename|path)=[\"']?([^\"'\s]+)[\"']?", re.IGNORECASE)
_MAX_LINE = 300
_MAX_TEXT = 20_000
"""Characters in which names are looked for."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A closed code block.

    Attributes:
        language: the first word of the info string, in lower case; empty without one.
        code: its lines, each with LF.
        info_path: the file that the info string names; empty if none.
        line_above: the last line above it that is not blank.
        comment_path: the file that its first line names; empty if none.
    """

    language: str
    code: str
    info_path: str = ""
    line_above: str = ""
    comment_path: str = ""

    @property
    def heading_path(self) -> str:
        """The file that the line above consists of; empty if it is a sentence."""
        match = _ONLY_PATH.match(self.line_above[:_MAX_LINE].strip())
        return match["path"] if match else ""

    @property
    def mentioned_paths(self) -> tuple[str, ...]:
        """All that looks like a file's name in the line above."""
        return tuple(dict.fromkeys(_WORD.findall(self.line_above[:_MAX_LINE])))

    @property
    def code_below_path(self) -> str:
        """The code without a first line that only names the file."""
        return self.code.partition("\n")[2] if self.comment_path else self.code


def read_fences(text: str) -> list[Fence]:
    """The closed code blocks of a Markdown text, in order."""
    fences: list[Fence] = []
    above = ""
    opening: re.Match[str] | None = None
    code: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if opening is None:
            opening = _OPENING.match(line)
            if opening is not None and opening["marker"][0] == "`" and "`" in opening["info"]:
                opening = None
            if opening is None and line.strip():
                above = line
            code = []
        elif _closes(line, opening["marker"]):
            fences.append(_fence(opening, code, above))
            opening, above = None, ""
        else:
            indent = len(opening["indent"])
            code.append(line[min(indent, len(line) - len(line.lstrip(" "))) :])
    return fences


def paths_in(text: str) -> list[str]:
    """All that looks like a file's name in a text, in order, each once."""
    return list(dict.fromkeys(_WORD.findall(text[:_MAX_TEXT])))


def _closes(line: str, marker: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(marker) and set(bare) == {marker[0]}


def _fence(opening: re.Match[str], code: list[str], above: str) -> Fence:
    info = opening["info"].strip()
    value = _INFO_VALUE.search(info)
    first, _, rest = info.partition(" ")
    language, _, behind = first.partition(":")
    path = value[1] if value else behind or next(iter(rest.split()), "")
    if not path and _WORD.fullmatch(language):
        path, language = language, ""
    comment = _COMMENT.match(code[0][:_MAX_LINE]) if code else None
    return Fence(
        language.lower().strip("{}."),
        "".join(line + "\n" for line in code),
        path if _WORD.fullmatch(path) else "",
        above.strip(),
        comment["path"] if comment else "",
    )
