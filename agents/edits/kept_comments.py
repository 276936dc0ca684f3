"""Comments and blank lines that a model leaves out when it writes a function again.

A line whose code is the same keeps its comment, and lines of comments that the new text only lacks stay.
Where comments are all that the new text changes, it is taken as it is: then they were meant.
"""

import io
import tokenize
from collections.abc import Sequence
from difflib import SequenceMatcher


def keep_comments(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The new lines of a definition with the comments of the old ones."""
    old_code, new_code = _without_comments(old), _without_comments(new)
    if old_code is None or new_code is None:
        return list(new)
    kept: list[str] = []
    matcher = SequenceMatcher(None, old_code, new_code, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            kept += [
                before if after == bare else after
                for before, after, bare in zip(
                    old[a:b], (line.rstrip() for line in new[c:d]), new_code[c:d], strict=True
                )
            ]
        elif tag == "delete" and all(_is_comment(line) for line in old[a:b]):
            kept += old[a:b]
        else:
            lead, tail = _comments_around(old[a:b])
            if any(line.strip() and _is_comment(line) for line in new[c:d]):
                lead = tail = 0  # the answer has comments of its own there
            kept += [*old[a : a + lead], *new[c:d], *old[b - tail : b]]
    return list(new) if kept == list(old) else kept


def _comments_around(lines: Sequence[str]) -> tuple[int, int]:
    """How many lines of comments are at the beginning, and at the end, of lines with code between."""
    code = [at for at, line in enumerate(lines) if not _is_comment(line)]
    return (code[0], len(lines) - 1 - code[-1]) if code else (0, 0)


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _without_comments(lines: Sequence[str]) -> list[str] | None:
    """The lines without the comments behind code; lines of comments stay. None if they are no Python."""
    bare = [line.rstrip() for line in lines]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    # Behind `if 1:` an indented definition is a program.
    text = ("if 1:\n" if indent else "") + "".join(line + "\n" for line in lines)
    shift = 2 if indent else 1
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            row, column = token.start
            if token.type == tokenize.COMMENT and lines[row - shift][:column].strip():
                bare[row - shift] = lines[row - shift][:column].rstrip()
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return None
    return bare
