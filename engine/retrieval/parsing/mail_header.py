"""Header fields of mails as text: `header_text`, `header_date`, and the name of a part, `part_name`.

Nothing here raises: what does not follow the standards is read as mail programs read it, or shown as it is.
"""

import binascii
import re
from datetime import UTC
from email.message import Message
from email.policy import Compat32
from email.utils import collapse_rfc2231_value, parsedate_to_datetime

from engine.retrieval.parsing.text_encoding import decode_labelled

_LONGEST = 4_000
_LONGEST_NAME = 200
_MOST_FIELDS = 50
_WORD = re.compile(
    r"=\?([^?\s*]{1,40})(?:\*[^?\s]{0,20})?\?([bq])\?([^?]{0,2000})\?=", re.IGNORECASE
)


class _Policy(Compat32):
    """Fields as they stand, with characters beyond ASCII in place of bytes."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        return _readable(value)


MAIL_POLICY = _Policy()
"""For `email.message_from_bytes`; what it parses has plain strings as fields."""


def header_text(message: Message, name: str) -> str:
    """The value of a field on one line, with encoded words decoded; all values of one that is repeated."""
    name = name.lower()
    values = [str(value) for key, value in message.raw_items() if key.lower() == name]
    return ", ".join(filter(None, map(decode_header, values[:_MOST_FIELDS])))


def header_date(message: Message) -> str:
    """The date as `2024-01-31 10:00:00+01:00`; as it stands if it is no date."""
    value = header_text(message, "Date")
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError, IndexError):
        return value
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)  # `-0000`
    return date.isoformat(" ", "seconds")


def part_name(part: Message) -> str:
    """The file name of a part, without folders; empty if it has none."""
    for field, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        try:
            value = part.get_param(parameter, "", header=field)
            name = decode_header(collapse_rfc2231_value(value) if value else "")
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
        name = re.split(r"[/\\]", name)[-1].strip()[:_LONGEST_NAME]
        if name:
            return name
    return ""


def decode_header(value: str) -> str:
    """A value on one line. Characters may be split over neighbouring encoded words."""
    text = " ".join(_readable(value[:_LONGEST]).split())
    parts: list[str] = []
    pending, charset = b"", ""
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        data = _decoded_word(match[2].lower(), match[3])
        if pending and not between.strip() and match[1].lower() == charset:
            pending += data
        else:
            parts.append(decode_labelled(pending, charset))
            parts.append(between if between.strip() or not end else "")
            pending, charset = data, match[1].lower()
        end = match.end()
    parts += (decode_labelled(pending, charset), text[end:])
    return " ".join("".join(parts).split())


def _readable(value: str) -> str:
    return decode_labelled(value.encode("utf-8", "surrogateescape"), "cp1252")


def _decoded_word(encoding: str, text: str) -> bytes:
    if encoding == "q":
        return binascii.a2b_qp(text.replace(" ", "_"), header=True)
    text = re.sub(r"[^A-Za-z0-9+/]", "", text)
    text = text[:-1] if len(text) % 4 == 1 else text
    return binascii.a2b_base64(text + "=" * (-len(text) % 4))
