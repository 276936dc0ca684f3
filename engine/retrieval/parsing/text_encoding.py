"""`decode_text`: the encoding of a text file, and its text."""

import codecs
import re
from dataclasses import dataclass

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import SpansOf

_MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MAX_CONTROL_SHARE = 0.01
_MAX_REPLACED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A text file, decoded; the attributes are those of `ParsedDocument`."""

    text: str
    encoding: str
    start: int
    spans_of: SpansOf
    notes: tuple[str, ...] = ()


def decode_text(data: bytes) -> DecodedText:
    """Decode a text file.

    Tried in this order: a byte order mark, UTF-16 without a mark, UTF-8, UTF-8 with a few damaged bytes, and
    what `charset-normalizer` finds likely. Spans refer to the file where decoding can be undone exactly,
    otherwise to the text.

    Raises:
        Unreadable: it is no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding, len(mark))
    wide = _wide_encoding(data)  # first: Latin text in it is valid UTF-8 with null characters
    if wide is not None:
        return _decoded(data, wide, 0)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return DecodedText(_text_only(text), "utf-8", 0, "file")
    return _damaged_utf8(data) or _guessed(data)


def decode_html(data: bytes) -> str:
    """The text of an HTML file: a mark, UTF-8, or the character set that it names, or a likely one."""
    if not data.startswith(tuple(mark for mark, _ in _MARKS)):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        named = _CHARSET.search(data[:_SAMPLE])
        if named is not None:
            try:
                return data.decode(named[1].decode(), "replace")
            except LookupError:
                pass
    return decode_text(data).text


def refuse_binary(text: str) -> None:
    """Check the beginning of a text for characters that no text has.

    Raises:
        Unreadable: it has too many.
    """
    sample = text[:_SAMPLE]
    if len(_CONTROL.findall(sample)) > _MAX_CONTROL_SHARE * len(sample):
        raise Unreadable("It is a binary file of an unknown type.")


def _text_only(text: str) -> str:
    refuse_binary(text)
    return text


def _decoded(data: bytes, encoding: str, start: int) -> DecodedText:
    try:
        text = data[start:].decode(encoding)
    except UnicodeDecodeError:
        text = data[start:].decode(encoding, "replace")
    if "\ufffd" not in text or text.encode(encoding, "replace") == data[start:]:
        return DecodedText(_text_only(text), encoding, start, "file")
    return _replaced(text, encoding)


def _replaced(text: str, encoding: str) -> DecodedText:
    note = f"{text.count(chr(0xFFFD))} places are no valid {encoding} and shown as \ufffd."
    return DecodedText(_text_only(text), "utf-8", 0, "text", (note,))


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 without a mark: Latin text has zeros at every second byte."""
    sample = data[:_SAMPLE]
    half = len(sample) // 2
    if half < 2 or len(data) % 2:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None


def _damaged_utf8(data: bytes) -> DecodedText | None:
    """UTF-8 with a few bytes that are not: more than one valid sequence for each of those."""
    text = data.decode("utf-8", "replace")
    replaced = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore")) - replaced
    if replaced > min(_MAX_REPLACED_SHARE * len(text), beyond_ascii):
        return None
    return _replaced(text, "utf-8")


def _guessed(data: bytes) -> DecodedText:
    if b"\0" in data[:_SAMPLE]:
        raise Unreadable("It is a binary file of an unknown type.")
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    encoding = best.encoding if best is not None else "latin-1"
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        encoding, text = "latin-1", data.decode("latin-1")
    _text_only(text)
    if not _round_trips(text, encoding, data):
        return DecodedText(text, "utf-8", 0, "text")
    return DecodedText(text, encoding, 0, "file")


def _round_trips(text: str, encoding: str, data: bytes) -> bool:
    """Whether each character has bytes of its own, so that any span can be decoded alone.

    It has not in encodings with shift states (ISO 2022), and where two characters share a code (JIS X 0213).
    """
    try:
        codes = {character: character.encode(encoding) for character in set(text)}
        alone = all(code.decode(encoding) == character for character, code in codes.items())
    except UnicodeError:
        return False
    return alone and b"".join(map(codes.__getitem__, text)) == data
