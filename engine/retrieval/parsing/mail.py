"""`extract_mail`: the text of an e-mail."""

from email import message_from_bytes, policy
from email.message import EmailMessage

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_text import extract_html
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_encoding import decode_text

_SHOWN = ("From", "To", "Cc", "Date", "Subject")


def extract_mail(data: bytes, most: int) -> Extracted:
    """Who wrote to whom, when and about what, then the body: the plain one if there are two.

    Attachments are named in the notes and not read; forwarded messages are.
    """
    builder = TextBuilder(most)
    message = message_from_bytes(data, policy=policy.default)
    _add_message(builder, message, 1)
    return builder.extracted()


def _add_message(builder: TextBuilder, message: EmailMessage, level: int) -> None:
    start = len(builder)
    subject = _header(message, "Subject")
    for name in _SHOWN:
        value = _header(message, name)
        if value:
            builder.add(f"{name}: {value}\n")
    if subject:
        builder.heading(level, subject, start)
        builder.title = builder.title or subject
    builder.paragraph()
    parts = [part for part in message.walk() if not part.is_multipart()]
    texts = [part for part in parts if _is_body(part)]
    plain = [part for part in texts if part.get_content_type() != "text/html"]
    for part in plain or texts:
        _add_body(builder, part)
    for part in parts:
        if part not in texts:
            name = part.get_filename() or part.get_content_type()
            builder.notes.append(f"The attachment {name!r} was not read.")


def _is_body(part: EmailMessage) -> bool:
    return part.get_content_maintype() == "text" and part.get_content_disposition() != "attachment"


def _add_body(builder: TextBuilder, part: EmailMessage) -> None:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    try:
        text = data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeDecodeError):
        text = decode_text(data).text
    if part.get_content_type() == "text/html":
        builder.append(extract_html(text, builder.room))
    else:
        builder.add(text.replace("\r\n", "\n"))
    builder.paragraph()


def _header(message: EmailMessage, name: str) -> str:
    """A header field; of one that the email package cannot parse, nothing."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except Exception:  # its parsers of damaged headers raise many kinds
        return ""
