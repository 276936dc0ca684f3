"""`extract_mailbox`: the messages of an mbox file, one after another."""

import re
from collections.abc import Iterator
from email import message_from_bytes

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.mail import add_message
from engine.retrieval.parsing.mail_header import MAIL_POLICY
from engine.retrieval.parsing.text_builder import TextBuilder

_POSTMARK = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]{0,200}\d{1,2}:\d\d[^\r\n]{0,20}\d{4}[^\r\n]{0,20}\r?\n"
    rb"(?=[!-9;-~]{1,80}:)"
)
"""The line before a message: behind a blank line, with a time and a year, before a field of a header."""
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)


def extract_mailbox(data: bytes, most: int) -> Extracted:
    """The text of all messages; the subject of each is a heading."""
    builder = TextBuilder(most)
    for message in _messages(data):
        builder.paragraph()
        builder.mark_break()
        add_message(builder, message_from_bytes(message, policy=MAIL_POLICY), 1)
    return builder.extracted()._replace(title=None)


def _messages(data: bytes) -> Iterator[bytes]:
    postmarks = list(_POSTMARK.finditer(data))
    if not postmarks:
        yield data
        return
    ends = [one.start() for one in postmarks[1:]] + [len(data)]
    for postmark, end in zip(postmarks, ends, strict=True):
        yield _ESCAPED.sub(rb"\1", data[postmark.end() : end])
