"""Comments that stand for code that an answer leaves out, such as `# ... rest of the code`."""

import re
from collections.abc import Iterable

_ELISION = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--|;|%)+\s*(?:"
    r"(?:\.\.\.|…)"
    r"|.{0,40}\b(?:rest|remaining|remainder|existing|other|previous|unchanged|same|omitted)\b.{0,60}"
    r"\b(?:code|functions?|methods?|lines?|implementation|logic|body|class|file|content|unchanged|same|before|"
    r"above|here|omitted)\b"
    r"|(?:unchanged|omitted|same as (?:before|above))\b"
    r")",
    re.IGNORECASE,
)


def first_elision(lines: Iterable[str], known: Iterable[str] = ()) -> str:
    """The first line that stands for left out code, without its indentation; empty if none does.

    Args:
        lines: of the answer's code.
        known: lines of the file: a comment that is there already stands for itself.
    """
    own = {line.strip() for line in known}
    for line in lines:
        bare = line.strip()
        if bare not in own and (bare in ("...", "…") or _ELISION.match(line)):
            return bare
    return ""
