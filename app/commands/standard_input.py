"""Text on standard input, as `pravaha run` reads it: a prompt, or what a prompt is about."""

import codecs
import io
import os
import select
import stat
import sys

from engine.api.errors import InvalidRequest

MAX_BYTES = 64 * 1024**2
"""More than any context holds; a reader must end, even if its input does not."""
PATIENCE_S = 3.0
"""Silence after which the user is told what is waited for."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def has_piped_input() -> bool:
    """Whether standard input is a pipe, a socket or a file: not a terminal, /dev/null, or closed."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, ValueError, OSError):  # closed: None, or without a descriptor
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def read_prompt(prompt: str | None) -> str:
    """The prompt with the piped text behind it; `-` and None stand for that text alone.

    Raises:
        InvalidRequest: the input is not text, or very long.
    """
    if prompt == "-":
        return read_text()
    if not has_piped_input():
        return prompt or ""
    piped = read_text()
    if not prompt or not piped.strip():
        return prompt or piped
    return f"{prompt}\n\n{piped}"


def read_text() -> str:
    """All of standard input.

    Raises:
        InvalidRequest: it is not text in UTF-8 (or UTF-16 with its mark), or very long.
    """
    _tell_what_is_waited_for()
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidRequest(
            f"Standard input has more than {MAX_BYTES >> 20} MiB, more than any context holds: pass "
            "a part of it."
        )
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"Standard input is not text: byte {error.start} cannot be read as "
            f"{encoding.removesuffix('-sig').upper()}."
        ) from error
    if "\0" in text:
        raise InvalidRequest(
            f"Standard input is not text: character {text.index(chr(0))} is a zero byte."
        )
    return text


def _tell_what_is_waited_for() -> None:
    """Say so if nothing arrives: a program that starts this one may have left a pipe open by mistake."""
    try:
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], PATIENCE_S)
    except (ValueError, OSError, io.UnsupportedOperation):  # Windows selects sockets only
        return
    if not ready and not sys.stdin.isatty():
        print(
            "pravaha: waiting for the text on standard input; `< /dev/null` leaves it out.",
            file=sys.stderr,
        )
