"""`detect_type`: what a file is, by its content, and by its name where texts look alike."""

import re
from dataclasses import dataclass
from typing import Literal

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.languages import language_of

Format = Literal[
    "text", "markdown", "rst", "code", "rows", "json", "notebook", "html", "mail", "mailbox",
    "pdf", "zip", "xls", "gzip", "image",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileType:
    """The type of a file.

    Attributes:
        format: which parser reads it; `zip` are office documents and books, too.
        media_type: its media type; a parser may find a more exact one.
        language: of source code.
    """

    format: Format
    media_type: str
    language: str | None = None

    @property
    def named_columns(self) -> bool:
        """Whether its rows may have a header row."""
        return self.media_type in ("text/csv", "text/tab-separated-values")


_HEAD = 4_096
_OLE = b"\xd0\xcf\x11\xe0"
"""Begins the compound files of Office 97 to 2003, whose parts have names in UTF-16."""
_WORKBOOKS = tuple(one.encode("utf-16-le") for one in ("Workbook\0", "Book\0"))
_OTHER_DOCUMENTS = tuple(
    one.encode("utf-16-le") for one in ("WordDocument\0", "PowerPoint Document\0")
)
_SIGNATURES: tuple[tuple[bytes, FileType], ...] = (
    (b"%PDF-", FileType("pdf", "application/pdf")),
    (b"\x1f\x8b", FileType("gzip", "application/gzip")),
    (b"PK\x03\x04", FileType("zip", "application/zip")),
    (b"PK\x05\x06", FileType("zip", "application/zip")),
    (b"\x89PNG\r\n\x1a\n", FileType("image", "image/png")),
    (b"\xff\xd8\xff", FileType("image", "image/jpeg")),
    (b"GIF87a", FileType("image", "image/gif")),
    (b"GIF89a", FileType("image", "image/gif")),
    (b"II*\0", FileType("image", "image/tiff")),
    (b"MM\0*", FileType("image", "image/tiff")),
)
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""The name of a stream in the container of a DOCX, XLSX or PPTX that has a password."""
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
    (b"\xca\xfe\xba\xbe", "a compiled program"),
    (b"\xcf\xfa\xed\xfe", "a compiled program"),
    (b"\0asm", "a compiled program"),
    (b"{\\rtf", "a Rich Text document; save it as DOCX"),
    (b"SQLite format 3\0", "a database"),
    (b"BZh", "a compressed archive"),
    (b"\xfd7zXZ\0", "a compressed archive"),
    (b"7z\xbc\xaf\x27\x1c", "a compressed archive"),
    (b"\x28\xb5\x2f\xfd", "a compressed archive"),
    (b"Rar!", "a compressed archive"),
    (b"ID3", "a sound recording"),
    (b"OggS", "a sound or video recording"),
    (b"fLaC", "a sound recording"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"GGUF", "model weights"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"PAR1", "a Parquet table"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"\0\x01\0\0\0", "a font"),
)
_MAIL = FileType("mail", "message/rfc822")
_MAILBOX = FileType("mailbox", "application/mbox")
_MARKDOWN = frozenset((".md", ".markdown", ".mdown", ".mkd", ".mdx"))
_BY_SUFFIX: dict[str, FileType] = {
    ".rst": FileType("rst", "text/x-rst"),
    ".rest": FileType("rst", "text/x-rst"),
    ".csv": FileType("rows", "text/csv"),
    ".tsv": FileType("rows", "text/tab-separated-values"),
    ".tab": FileType("rows", "text/tab-separated-values"),
    ".jsonl": FileType("rows", "application/jsonl"),
    ".ndjson": FileType("rows", "application/jsonl"),
    ".json": FileType("json", "application/json"),
    ".eml": _MAIL,
    ".emlx": _MAIL,
    ".mht": _MAIL,
    ".mhtml": _MAIL,
    ".mbox": _MAILBOX,
    ".mbx": _MAILBOX,
} | dict.fromkeys(_MARKDOWN, FileType("markdown", "text/markdown"))
_HTML = FileType("html", "text/html")
_HTML_START = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_SENDERS = frozenset((b"from", b"received", b"return-path"))
_POSTMARKS = frozenset((b"date", b"message-id", b"mime-version"))
_JSON_START = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*[\[{]\s*[\"\[{\]}]")


def detect_type(name: str, data: bytes) -> FileType:
    """The type of a file.

    Args:
        name: without its folder. Tells apart what only people can: Markdown, CSV and source code are text.
        data: its bytes.

    Raises:
        Unreadable: it is of a type that holds no text, or none that a parser reads.
    """
    head = data[:_HEAD]
    for signature, found in _SIGNATURES:
        if head.startswith(signature):
            return found
    if b"%PDF-" in head[:1024] and name.lower().endswith(".pdf"):
        return _SIGNATURES[0][1]
    if head[:4] == b"RIFF":
        if head[8:12] == b"WEBP":
            return FileType("image", "image/webp")
        raise Unreadable("It is a sound or video recording.")
    if head[:2] == b"BM" and b"\0" in head[:32]:
        return FileType("image", "image/bmp")
    if head.startswith(_OLE):
        if name.lower().endswith(".msg"):
            raise Unreadable("It is an Outlook message; save it as EML.")
        return _compound_type(data)
    binary = b"\0" in head
    for signature, kind in _REFUSED:
        if head.startswith(signature) and (binary or signature in (b"{\\rtf", b"BZh", b"ID3")):
            raise Unreadable(f"It is {kind}.")
    if head[4:8] == b"ftyp":
        raise Unreadable("It is a video, sound recording or image of the MP4 family.")
    return _text_type(name, head)


def _compound_type(data: bytes) -> FileType:
    """The type of a compound file: workbooks have no part of another document, which may hold one itself."""
    if _ENCRYPTED in data:
        raise Unreadable("It is protected by a password.")
    has_other = any(one in data for one in _OTHER_DOCUMENTS)
    if not has_other and any(one in data for one in _WORKBOOKS):
        return FileType("xls", "application/vnd.ms-excel")
    raise Unreadable("It is a document of an old Office format; save it as DOCX or PPTX.")


def _text_type(name: str, head: bytes) -> FileType:
    dot = name.rfind(".")
    suffix = name[dot:].lower() if dot > 0 else ""
    if suffix == ".ipynb" and b"{" in head[:256]:
        return FileType("notebook", "application/x-ipynb+json")
    if suffix in (".html", ".htm", ".xhtml"):
        return _HTML
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    first_line = head[:256].partition(b"\n")[0].decode("ascii", "replace")
    language = language_of(name, first_line)
    if language is not None:
        return FileType("code", f"text/x-{language}", language)
    if _begins_as_html(head):
        return _HTML
    if suffix in ("", ".txt", ".mail", ".msg") and _begins_as_mail(head):
        return _MAILBOX if head.startswith(b"From ") else _MAIL
    if not suffix and _JSON_START.match(head):
        return FileType("json", "application/json")
    return FileType("text", "text/plain")


def _begins_as_html(head: bytes) -> bool:
    rest = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if rest.startswith(b"<?xml"):
        rest = rest.partition(b"?>")[2].lstrip()
    while rest.startswith(b"<!--"):
        rest = rest.partition(b"-->")[2].lstrip()
    return _HTML_START.match(rest) is not None


def _begins_as_mail(head: bytes) -> bool:
    """Whether it begins with header fields, among them who sent it and when."""
    names: set[bytes] = set()
    for line in head.splitlines():
        if line.startswith((b" ", b"\t", b"From ")):
            continue
        name, colon, _ = line.partition(b":")
        if not line or not colon or b" " in name:
            break
        names.add(name.lower())
    return bool(names & _SENDERS and names & _POSTMARKS)
