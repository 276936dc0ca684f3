"""`code_of`: the code in a model's answer."""

import re
import textwrap

FENCE = "```"
_OPEN = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)


def code_of(answer: str, *, opened: bool = False) -> str:
    """The code of an answer: the longest fenced block, or the whole answer if it has no fence.

    Several blocks of an answer are usually the code and an example of its use; the last of the longest is
    taken. A fence that is not closed reaches to the end.

    Args:
        answer: the text.
        opened: whether the answer begins inside a fence that the prompt opened.
    """
    text = answer.replace("\r\n", "\n")
    if opened:
        return _ended(_before_close(text, FENCE))
    blocks: list[str] = []
    at = 0
    while match := _OPEN.search(text, at):
        body = text[match.end() + 1 :]
        block = _before_close(body, match[1])
        blocks.append(textwrap.dedent(block))
        at = match.end() + 1 + len(block) + len(match[1])
    chosen = max(blocks, key=lambda one: len(one.strip()), default=text)
    return _ended(chosen)


def _before_close(text: str, fence: str) -> str:
    """The text up to the line that closes a fence; a longer run of the same character closes it, too."""
    close = re.search(rf"^[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", text, re.MULTILINE)
    return text if close is None else text[: close.start()]


def _ended(code: str) -> str:
    """The code with one line end at its end; empty if it is blank."""
    return code.rstrip() + "\n" if code.strip() else ""
