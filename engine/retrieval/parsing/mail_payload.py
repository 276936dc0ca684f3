"""`part_bytes` and `part_text`: the content of one part of a mail, decoded as far as it can be."""

import binascii
import quopri
import re
from email.message import Message

from engine.retrieval.parsing.text_encoding import decode_html, decode_labelled

_BASE64 = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_UUENCODED = ("x-uuencode", "uuencode", "uue", "x-uue")


def part_bytes(part: Message) -> bytes:
    """The content without its transfer encoding. Broken encodings give what can be decoded."""
    words = str(part.get("content-transfer-encoding", "")).lower().replace(";", " ").split()
    encoding = words[0] if words else ""
    if encoding in _UUENCODED:
        return _payload(part)
    field = part["content-transfer-encoding"]
    del part["content-transfer-encoding"]  # so that the bytes come as they are
    raw = _payload(part)
    if field is not None:
        part["content-transfer-encoding"] = field
    match encoding:
        case "base64":
            return _from_base64(raw)
        case "quoted-printable":
            return quopri.decodestring(raw)
    return raw


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _from_base64(payload: bytes) -> bytes:
    """Base64, and text behind it: mailing lists add a footer to whatever the body is encoded in."""
    lines = payload.split(b"\n")
    found: list[bytes] = []
    pending: list[bytes] = []

    def decode() -> None:
        text = b"".join(pending).rstrip(b"=")
        text = text[:-1] if len(text) % 4 == 1 else text
        found.append(binascii.a2b_base64(text + b"=" * (-len(text) % 4)))
        pending.clear()

    for number, line in enumerate(lines):
        line = line.strip()
        ended = bool(found) and not pending
        if not _BASE64.fullmatch(line) or (ended and len(line) % 4):
            decode()
            return b"".join(found) + b"\n" + b"\n".join(lines[number:])
        pending.append(line)
        if line.endswith(b"="):
            decode()
    decode()
    return b"".join(found)


def part_text(part: Message) -> str:
    """The content of a text part, with its line ends as LF, in paragraphs if it is `format=flowed`."""
    data = part_bytes(part)
    charset = _parameter(part, "charset")
    if part.get_content_type() == "text/html" and not charset:
        return decode_html(data)
    text = decode_labelled(data, charset).replace("\r\n", "\n").replace("\r", "\n")
    if part.get_content_type() == "text/plain" and _parameter(part, "format").lower() == "flowed":
        return _unflowed(text, delete_spaces=_parameter(part, "delsp").lower() == "yes")
    return text


def _parameter(part: Message, name: str) -> str:
    try:
        value = part.get_param(name, "")
    except (ValueError, TypeError, AttributeError):
        return ""
    return value if isinstance(value, str) else str(value[2])


def _unflowed(text: str, *, delete_spaces: bool) -> str:
    """Text of RFC 3676, in which a space at the end of a line says that the paragraph goes on."""
    lines: list[str] = []
    open_depth = -1  # quotes of the paragraph that goes on
    for line in text.split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        signature = content == "-- "
        flows = content.endswith(" ") and not signature
        if flows and delete_spaces:
            content = content[:-1]
        if depth == open_depth and not signature:
            lines.append(content)
        else:
            quotes = ">" * depth + " " * bool(depth)
            lines.append(f"\n{quotes}{content}" if lines else f"{quotes}{content}")
        open_depth = depth if flows else -1
    return "".join(lines)
