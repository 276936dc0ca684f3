"""`StringMember`: reads one string member of a JSON object while its text arrives."""

import re
from enum import Enum, auto

import orjson

_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_PLAIN = re.compile(r'[^"\\]+')
_SECOND_HALF = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,4})?")


class _State(Enum):
    BEFORE = auto()
    INSIDE = auto()
    AFTER = auto()


class StringMember:
    """The value of the first member, if it has the given name and is a string; feed it the pieces.

    Attributes:
        found: whether the value has begun.
    """

    def __init__(self, name: str) -> None:
        self.found = False
        self._head = re.compile(r"\s*\{\s*" + re.escape(orjson.dumps(name).decode()) + r'\s*:\s*"')
        self._pending = ""
        self._state = _State.BEFORE

    def feed(self, text: str) -> str:
        """What is certain of the value after this piece."""
        if self._state is _State.AFTER:
            return ""
        self._pending += text
        if self._state is _State.BEFORE:
            head = self._head.match(self._pending)
            if head is None:
                return ""
            self.found, self._state = True, _State.INSIDE
            self._pending = self._pending[head.end() :]
        return self._inside()

    def _inside(self) -> str:
        pieces, at, pending = [], 0, self._pending
        while at < len(pending):
            if pending[at] == '"':
                self._state = _State.AFTER
                break
            plain = _PLAIN.match(pending, at)
            if plain is not None:
                pieces.append(plain.group())
                at = plain.end()
                continue
            escape = _ESCAPE.match(pending, at)
            if escape is None:
                if len(pending) - at >= 6 or (len(pending) - at > 1 and pending[at + 1] != "u"):
                    pieces.append(pending[at])  # no escape: the model wrote it as it stands
                    at += 1
                    continue
                break  # an escape whose end has not arrived
            value, end = _value(pending, escape)
            if value is None:
                break
            pieces.append(value)
            at = end
        self._pending = pending[at:]
        return "".join(pieces)


def _value(text: str, escape: "re.Match[str]") -> tuple[str | None, int]:
    """The character of an escape and its end; None while the second half of a pair may come."""
    code = escape.group()
    if code[1] != "u" or not 0xD800 <= int(code[2:], 16) < 0xE000:
        return orjson.loads(f'"{code}"'), escape.end()
    high, end = int(code[2:], 16), escape.end()
    if high >= 0xDC00:
        return "\ufffd", end  # a second half alone
    rest = text[end : end + 6]
    if _SECOND_HALF.fullmatch(rest):
        return orjson.loads(f'"{code}{rest}"'), end + 6
    if len(rest) < 6 and _BEGUN_ESCAPE.fullmatch(rest or "\\"):
        return None, end
    return "\ufffd", end
