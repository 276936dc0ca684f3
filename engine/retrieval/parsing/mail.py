"""`extract_mail`: the text of an e-mail as a mail program shows it.

Header, body, then the attachments whose format is read, and forwarded messages with their own headers. Of
alternatives the richest is the body, with whatever stands before or after them, such as the footer of a
mailing list. Quoted replies and signatures are kept.
"""

import codecs
import re
from email import message_from_bytes
from email.message import Message

from engine.retrieval.parsing.attachment import attachment_text
from engine.retrieval.parsing.calendar_text import calendar_text
from engine.retrieval.parsing.card_text import card_text
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_text import extract_html
from engine.retrieval.parsing.mail_header import MAIL_POLICY, header_date, header_text, part_name
from engine.retrieval.parsing.mail_payload import part_bytes, part_text
from engine.retrieval.parsing.text_builder import TextBuilder

_SHOWN = ("From", "To", "Cc", "Bcc", "Subject")
_MAX_DEPTH = 20
"""Parts, and messages, inside each other."""
_MAX_ATTACHMENTS = 500
_EMLX = re.compile(rb"\A(\d{1,12})[ \t]*\r?\n")
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"https?://\S+")
_STUB = 4
"""An alternative with less than a quarter of the words of another is a stub: "open this in a browser"."""
_CALENDARS = frozenset(["text/calendar", "application/ics"])
_CARDS = frozenset(["text/vcard", "text/x-vcard", "text/directory"])
_SIGNATURES = frozenset(
    ["application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"]
)
_SMIME = frozenset(["application/pkcs7-mime", "application/x-pkcs7-mime"])
_RICH = re.compile(r"<(?:/?[\w-]{1,60})>")
_PGP_MESSAGE = re.compile(
    r"-----BEGIN PGP MESSAGE-----.*?(?:-----END PGP MESSAGE-----|\Z)", re.DOTALL
)
_PGP_SIGNED = re.compile(
    r"-----BEGIN PGP SIGNED MESSAGE-----\n(?:\w+: [^\n]*\n)*|-----BEGIN PGP SIGNATURE-----.*?"
    r"(?:-----END PGP SIGNATURE-----|\Z)",
    re.DOTALL,
)


def extract_mail(data: bytes, most: int) -> Extracted:
    """The text of one message, also of one that Apple Mail has stored (`.emlx`)."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(codecs.BOM_UTF8).lstrip()  # a blank line would end the header
    stored = _EMLX.match(data)
    if stored is not None:
        data = data[stored.end() : stored.end() + int(stored[1])]
    builder = TextBuilder(most)
    add_message(builder, message_from_bytes(data, policy=MAIL_POLICY), 1)
    return builder.extracted()


def add_message(builder: TextBuilder, message: Message, level: int) -> None:
    """Add a message, whose subject is a heading of this level."""
    body = _Body(TextBuilder(builder.room))
    body.add(message, 0)
    builder.paragraph()
    start = len(builder)
    subject = header_text(message, "Subject")
    for name in _SHOWN:
        value = header_text(message, name)
        if value:
            builder.add(f"{name}: {value}\n")
    date = header_date(message)
    if date:
        builder.add(f"Date: {date}\n")
    names = [part_name(part) for part in body.attached]
    if any(names):
        builder.add(f"Attachments: {', '.join(filter(None, names))}\n")
    if subject and len(builder) > start:
        builder.heading(level, subject, start)
        builder.title = builder.title or subject
    builder.paragraph()
    _append(builder, body.builder.extracted(), level)
    for part in body.attached[:_MAX_ATTACHMENTS]:
        _add_attached(builder, part, level)
    if len(body.attached) > _MAX_ATTACHMENTS:
        builder.notes.append(
            f"Only {_MAX_ATTACHMENTS} of {len(body.attached)} attachments were read."
        )


def _append(builder: TextBuilder, part: Extracted, level: int) -> None:
    """Add a text whose headings are below the subject."""
    lines = part.text.rstrip()
    if lines:
        headings = tuple(one._replace(level=one.level + level) for one in part.headings)
        builder.append(part._replace(text=f"{lines}\n", headings=headings, pages=()))
        builder.paragraph()
    else:
        builder.notes += part.notes


class _Body:
    """The body of a message: its text, and the parts that a mail program lists below it.

    Attributes:
        builder: of the text.
        attached: attachments and forwarded messages.
    """

    def __init__(self, builder: TextBuilder) -> None:
        self.builder = builder
        self.attached: list[Message] = []
        self._texts: set[tuple[str, ...]] = set()

    def add(self, part: Message, depth: int) -> None:
        """Add what a part shows."""
        kind = part.get_content_type()
        if depth > _MAX_DEPTH:
            self.builder.notes.append("Parts that are nested too deep were not read.")
        elif part.is_multipart() and part.get_content_maintype() == "multipart":
            self._add_parts(kind, _children(part), part, depth + 1)
        elif kind == "message/delivery-status":
            self._add_text("\n\n".join(_fields(one) for one in _children(part)), part)
        elif kind in _CALENDARS or part_name(part).lower().endswith(".ics"):
            self._add_text(calendar_text(part_text(part)), part)
        elif kind in _CARDS or part_name(part).lower().endswith(".vcf"):
            self._add_text(card_text(part_text(part)), part)
        elif kind in _SMIME:
            self.builder.notes.append("The body is signed or encrypted by S/MIME and was not read.")
        elif _is_text(part):
            self._add_text(part_text(part), part)
        elif kind not in _SIGNATURES:
            self.attached.append(part)

    def _add_parts(self, kind: str, parts: list[Message], whole: Message, depth: int) -> None:
        match kind:
            case "multipart/alternative":
                self._add_richest(parts, depth)
            case "multipart/related":
                self._add_related(parts, whole, depth)
            case "multipart/encrypted":
                self.builder.notes.append("The body is encrypted and was not read.")
            case _:
                for part in parts:
                    self.add(part, depth)

    def _add_richest(self, parts: list[Message], depth: int) -> None:
        """Add the best alternative; then what is no alternative, wherever its sender has put it."""
        options: list[tuple[bool, _Body]] = []
        others: list[Message] = []
        for part in parts:
            kind = part.get_content_type()
            if kind in ("text/x-amp-html", "text/watch-html"):
                continue
            if kind in _CALENDARS or not (_is_text(part) or kind.startswith("multipart/")):
                others.append(part)
                continue
            option = _Body(TextBuilder(self.builder.room))
            option.add(part, depth)
            options.append((kind == "text/html" or kind.startswith("multipart/"), option))
        best = _richest(options)
        if best is not None:
            self.builder.paragraph()
            self.builder.append(best.builder.extracted())
            self.attached += best.attached
        for part in others:
            self.add(part, depth)

    def _add_related(self, parts: list[Message], whole: Message, depth: int) -> None:
        """Add the root; pictures that it shows are no attachments."""
        start = str(whole.get_param("start", "") or "").strip("<> ")
        shown = [part for part in parts if _is_text(part) or part.is_multipart()]
        root = next(
            (
                one
                for one in shown
                if start and str(one.get("content-id", "")).strip("<> ") == start
            ),
            shown[0] if shown else None,
        )
        for part in parts:
            inside = "content-id" in part or "content-location" in part
            apart = part.get_content_maintype() in ("message", "multipart", "application")
            if part is root or apart or not inside:
                self.add(part, depth)

    def _add_text(self, text: str, part: Message) -> None:
        if part.get_content_type() == "text/html":
            found = extract_html(text, self.builder.room, mail=True)
        else:
            found = Extracted(self._plain(text, part))
        words = tuple(_WORD.findall(found.text))
        if not words and not found.text.strip():
            return
        if words and words in self._texts:
            return  # the same text once more, as HTML
        self._texts.add(words)
        self.builder.paragraph()
        self.builder.append(found._replace(text=f"{found.text.rstrip()}\n"))
        self.builder.paragraph()

    def _plain(self, text: str, part: Message) -> str:
        if part.get_content_type() in ("text/enriched", "text/richtext"):
            text = _RICH.sub("", text)
        text, encrypted = _PGP_MESSAGE.subn("", text)
        if encrypted:
            self.builder.notes.append("A part is encrypted with OpenPGP and was not read.")
        return _PGP_SIGNED.sub("", text).strip("\n")


def _richest(options: list[tuple[bool, _Body]]) -> _Body | None:
    """HTML before plain text, the last before the first, unless it is empty or a stub."""
    if not options:
        return None
    counted = [
        (len(_WORD.findall(_ADDRESS.sub("", body.builder.extracted().text))), rich, body)
        for rich, body in options
    ]
    most = max(count for count, _, _ in counted)
    for wanted in (True, False):
        for count, rich, body in reversed(counted):
            if rich is wanted and count * _STUB >= most and count:
                return body
    return max(counted, key=lambda one: one[0])[2]


def _add_attached(builder: TextBuilder, part: Message, level: int) -> None:
    builder.paragraph()
    kind = part.get_content_type()
    if kind in ("message/rfc822", "message/global", "message/news"):
        if level > _MAX_DEPTH:
            builder.notes.append("Messages that are nested too deep were not read.")
        else:
            add_message(builder, _forwarded(part), level + 1)
        return
    name = part_name(part)
    if kind.startswith("image/") and "content-id" in part and not _is_attachment(part):
        return
    found, reason = attachment_text(name, kind, part_bytes(part), builder.room)
    if reason:
        builder.notes.append(f"The attachment {name or kind!r} was not read: {reason}")
        return
    title = f"Attachment: {name or kind}"
    builder.heading(level + 1, title)
    builder.add(f"{title}\n\n")
    _append(builder, found, level + 1)


def _forwarded(part: Message) -> Message:
    """The message in a part; some senders encode it, which the standard forbids."""
    children = _children(part)
    inner = children[0] if children else Message()
    if not inner.keys() and not inner.is_multipart():
        coded = Message()
        coded["Content-Transfer-Encoding"] = str(part.get("content-transfer-encoding", ""))
        coded.set_payload(inner.get_payload())
        return message_from_bytes(part_bytes(coded), policy=MAIL_POLICY)
    return inner


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [one for one in payload if isinstance(one, Message)] if isinstance(payload, list) else []


def _is_attachment(part: Message) -> bool:
    return part.get_content_disposition() == "attachment"


def _is_text(part: Message) -> bool:
    """Whether a mail program shows a part in the body."""
    kind = part.get_content_type()
    if part.get_content_maintype() == "multipart":
        return True  # without the parts that it announces
    if part.get_content_maintype() != "text" or kind == "text/rtf" or _is_attachment(part):
        return False
    return kind in ("text/plain", "text/html") or not part_name(part)


def _fields(message: Message) -> str:
    """The fields of a report about a delivery."""
    names = dict.fromkeys(name for name, _ in message.raw_items())
    return "\n".join(f"{name}: {header_text(message, name)}" for name in names)
