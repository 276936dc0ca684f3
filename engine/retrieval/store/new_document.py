"""`NewDocument`: what the store keeps of a file beside its chunks."""

from dataclasses import dataclass, field

from engine.retrieval.api.parsed_document import SpansOf
from engine.retrieval.api.passage import AttributeValue


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A file that was read, or could not be read.

    Attributes:
        path: absolute path.
        content_hash: hash of its bytes; empty if they could not be read.
        size: its size in bytes.
        mtime_ns: time of its last change.
        reason: why it cannot be read, or which parts could not be read.
        media_type: type by content.
        title: the document's own title.
        spans_of: whether offsets refer to the file or to `text`.
        encoding: Python's name of the file's encoding.
        text: the extracted text that spans refer to; None if they refer to the file.
        attributes: values that the user gave it.
    """

    path: str
    content_hash: str
    size: int
    mtime_ns: int
    reason: str | None = None
    media_type: str | None = None
    title: str | None = None
    spans_of: SpansOf = "file"
    encoding: str = "utf-8"
    text: str | None = None
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
