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
_XML_ENCODING = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})")
_LABELS = {
    **dict.fromkeys(
        [
            "ascii",
            "us-ascii",
            "iso-8859-1",
            "iso8859-1",
            "latin1",
            "latin-1",
            "l1",
            "ansi_x3.4-1968",
        ],
        "cp1252",
    ),
    **dict.fromkeys(["gb2312", "gbk", "x-gbk", "gb_2312-80"], "gb18030"),
    **dict.fromkeys(["ks_c_5601-1987", "euc-kr", "ks_c_5601-1989", "korean"], "cp949"),
    **dict.fromkeys(["shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"], "cp932"),
    **dict.fromkeys(["iso-8859-9", "latin5"], "cp1254"),
    **dict.fromkeys(["iso-8859-11", "tis-620"], "cp874"),
    "big5": "big5hkscs",
    "iso-8859-8-i": "iso-8859-8",
    "x-mac-roman": "mac_roman",
    "macintosh": "mac_roman",
    "unicode-1-1-utf-7": "utf-7",
}
"""Character sets that the Encoding standard reads as a larger one, and names that Python does not know."""
_SEVEN_BIT = ("iso-2022", "hz", "utf-7", "utf7")
"""Sets of which every text looks like ASCII."""
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
    """The text of an HTML file: a mark, the character set that it names, UTF-8, or a likely one."""
    head = data[:_SAMPLE]
    named = _CHARSET.search(head) or _XML_ENCODING.match(head)
    return decode_labelled(data, named[1].decode() if named is not None else "")


def decode_labelled(data: bytes, label: str) -> str:
    """Text whose sender names its character set, as browsers and mail programs read it.

    A byte order mark counts first. Labels mean what the Encoding standard says: `iso-8859-1` is
    windows-1252. UTF-8 that is called something else is read as UTF-8. Where the label is unknown or does not
    fit, the set is guessed.
    """
    if data.startswith(tuple(mark for mark, _ in _MARKS)):
        return decode_text(data).text
    label = label.strip().strip("\"'").lower()
    label = _LABELS.get(label, label)
    if not label.startswith(_SEVEN_BIT):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    try:
        text = data.decode(label, "replace")
    except (LookupError, UnicodeError):
        text = ""
    if text and text.count("\ufffd") <= _MAX_REPLACED_SHARE * len(text):
        return text
    try:
        return decode_text(data).text
    except Unreadable:
        return data.decode("latin-1")


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
