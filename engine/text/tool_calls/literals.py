r"""JSON values as models write them, converted to valid JSON while they arrive.

Valid JSON is passed on as it is. Beyond it are read: Python's literals (single and triple quotes, tuples,
`True`, `None`), commas after the last item, line breaks inside a string, unknown escapes (`\d`), and words
without quotes. Strings are passed on as they arrive, numbers and words when they are complete.

If a value breaks off in the middle, what was passed on is closed, so that it is valid JSON.
"""

import json
import re
import sys
from collections.abc import Callable

from engine.text.tool_calls.characters import SPACES, Characters, Reading, Unreadable

Write = Callable[[str], object]
"""Takes a piece of JSON text."""

MAX_DEPTH = 64
_MAX_SCALAR = 512
"""Characters of a number or of a word without quotes."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS = {
    "true": "true", "false": "false", "null": "null",
    "True": "true", "False": "false", "None": "null",
    "NaN": "null", "Infinity": "null", "-Infinity": "null",
}  # fmt: skip
_ESCAPES = '"\\/bfnrt'
_PYTHON_ESCAPES = {"x": 2, "U": 8}
"""Escapes that only Python has, with the number of their digits."""
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def discard(text: str) -> None:
    """A `Write` for a value that nobody needs."""


def write_value(chars: Characters, write: Write, depth: int = 0) -> Reading[None]:
    """Convert the value that follows; spaces before it are read by the caller.

    Raises:
        Unreadable: it is no value, or breaks off; what was written is valid JSON, unless nothing was.
    """
    character = yield from chars.read()
    if character == "{":
        yield from _write_object(chars, write, depth + 1)
    elif character and character in "[(":
        yield from _write_array(chars, write, depth + 1, _CLOSING[character])
    elif character and character in "\"'":
        yield from write_string(chars, write, character)
    else:
        chars.unread(character)
        yield from _write_scalar(chars, write)


def write_string(chars: Characters, write: Write, quote: str) -> Reading[None]:
    """Convert the rest of a string whose opening quote was read."""
    back = chars.back
    write('"')
    try:
        if (yield from chars.literal(quote)):
            if not (yield from chars.literal(quote)):
                write('"')
                return
            quote *= 3
        end, rest = quote[0], quote[1:]
        while True:
            character = back.pop() if back else (yield)
            if not character:
                raise Unreadable
            if character == end and (not rest or (yield from chars.literal(rest))):
                break
            if character == "\\":
                yield from _write_escape(chars, write)
            else:
                write(escaped(character))
    except Unreadable:
        write('"')
        raise
    write('"')


def escaped(text: str) -> str:
    """Text as the inside of a JSON string; only what must be escaped is."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_string(chars: Characters, quote: str, *, limit: int) -> Reading[str]:
    """The value of a string whose opening quote was read.

    Raises:
        Unreadable: it breaks off, or is longer than `limit` characters.
    """
    pieces: list[str] = []

    def write(piece: str) -> None:
        if len(pieces) > limit:
            raise Unreadable
        pieces.append(piece)

    yield from write_string(chars, write, quote)
    value: str = json.loads("".join(pieces))
    return value


def _write_escape(chars: Characters, write: Write) -> Reading[None]:
    """Convert an escape whose backslash was read; one that JSON lacks is a backslash itself."""
    character = yield from chars.read()
    if character == "u":
        yield from _write_unicode_escape(chars, write)
    elif character and character in _PYTHON_ESCAPES:
        digits = yield from _hexadecimal(chars, _PYTHON_ESCAPES[character])
        code = int(digits or "0", 16)
        if digits and code <= sys.maxunicode and not 0xD800 <= code < 0xE000:
            write(escaped(chr(code)))
        else:
            write("\\\\" + character)
            chars.unread(digits)
    elif character == "'":
        write("'")
    elif character and character in _ESCAPES:
        write("\\" + character)
    else:
        write("\\\\")
        chars.unread(character)


def _write_unicode_escape(chars: Characters, write: Write) -> Reading[None]:
    r"""Convert `\uXXXX`, and the second half of a pair; a half alone becomes U+FFFD."""
    first = yield from _hexadecimal(chars, 4)
    unit = int(first or "0", 16)
    if not first:
        write("\\\\u")
    elif not 0xD800 <= unit < 0xE000:
        write("\\u" + first)
    elif unit < 0xDC00 and (yield from chars.literal("\\u")):
        second = yield from _hexadecimal(chars, 4)
        if 0xDC00 <= int(second or "0", 16) < 0xE000:
            write(f"\\u{first}\\u{second}")
        else:
            write("\\ufffd")
            chars.unread("\\u" + second)
    else:
        write("\\ufffd")


def _hexadecimal(chars: Characters, count: int) -> Reading[str]:
    """So many hexadecimal digits; empty, and nothing is read, if they do not follow."""
    digits = ""
    while len(digits) < count:
        character = yield from chars.read()
        if not character or character not in "0123456789abcdefABCDEF":
            chars.unread(digits + character)
            return ""
        digits += character
    return digits


def _write_object(chars: Characters, write: Write, depth: int) -> Reading[None]:
    """Convert the rest of an object whose brace was read."""
    _check_depth(depth)
    write("{")
    held = ""  # the spaces and the comma before the next member
    missing = ""  # of the current member

    def write_member(text: str) -> None:
        nonlocal missing
        missing = ""
        write(text)

    try:
        while True:
            held += yield from chars.spaces()
            character = yield from chars.read()
            if character == "}":
                break
            if not character or character not in "\"'":
                chars.unread(character)
                raise Unreadable
            write(held)
            missing = ": null"
            yield from write_string(chars, write, character)
            write((yield from chars.spaces()))
            if not (yield from chars.literal(":")):
                raise Unreadable
            missing = "null"
            write(":" + (yield from chars.spaces()))
            yield from write_value(chars, write_member, depth)
            held = yield from _separator(chars, "}")
    except Unreadable:
        write(missing + "}")
        raise
    write("}" if "," in held else held + "}")


def _write_array(chars: Characters, write: Write, depth: int, closing: str) -> Reading[None]:
    """Convert the rest of an array, or of a tuple, whose bracket was read."""
    _check_depth(depth)
    write("[")
    held = ""

    def write_item(text: str) -> None:
        nonlocal held
        write(held + text)
        held = ""

    try:
        while True:
            held += yield from chars.spaces()
            if (yield from chars.literal(closing)):
                break
            yield from write_value(chars, write_item, depth)
            held = yield from _separator(chars, closing)
    except Unreadable:
        write("]")
        raise
    write("]" if "," in held else held + "]")


def _separator(chars: Characters, closing: str) -> Reading[str]:
    """The spaces and the comma after an item.

    Raises:
        Unreadable: neither a comma nor the end follows.
    """
    spaces = yield from chars.spaces()
    character = yield from chars.read()
    if character == ",":
        return spaces + ","
    chars.unread(character)
    if character != closing:
        raise Unreadable
    return spaces


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Unreadable


def _write_scalar(chars: Characters, write: Write) -> Reading[None]:
    """Convert a number, a constant, or a word without quotes."""
    text = ""
    while True:
        character = yield from chars.read()
        if not character or character in ",}])\n" or len(text) > _MAX_SCALAR:
            break
        text += character
    word = text.rstrip(SPACES)
    chars.unread(text[len(word) :] + character)
    if not _is_word(word):
        chars.unread(word)
        raise Unreadable
    write(_json_scalar(word))


def _is_word(word: str) -> bool:
    """Whether a text can be meant as a value: it has none of the signs of other values."""
    return 0 < len(word) <= _MAX_SCALAR and not any(one in word for one in "{[(\"'<>`:=")


def _json_scalar(word: str) -> str:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if _NUMBER.fullmatch(word):
        return word
    for convert in (int, float):
        try:
            return json.dumps(convert(word), allow_nan=False)
        except ValueError:
            continue
    return json.dumps(word, ensure_ascii=False)


def json_text(text: str) -> str | None:
    """A complete text as one JSON value; None if it is none."""
    pieces: list[str] = []
    chars = Characters()
    reader = write_value(chars, pieces.append)
    chars.unread(text.strip(SPACES))
    try:
        next(reader)
        while True:
            reader.send("")
    except StopIteration:
        return None if chars.unread_text else "".join(pieces)
    except Unreadable:
        return None
