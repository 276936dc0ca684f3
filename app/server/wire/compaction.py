"""Compaction items: a summary in place of the beginning of a conversation.

OpenAI encrypts the summary, so that only its servers read it. Here it is text in base64 behind a mark: a
client sends it back unchanged either way, and one that another server wrote is recognised.
"""

import base64
import binascii
import uuid
from typing import Any

_MARK = "pravaha1."
SUMMARY_HEAD = "Summary of the conversation so far:"
"""Before a summary where the model reads it."""


def compaction_item(summary: str) -> dict[str, Any]:
    """The item that stands for a summarised conversation."""
    text = base64.urlsafe_b64encode(summary.encode()).decode()
    return {
        "id": f"cmp_{uuid.uuid4().hex}",
        "type": "compaction",
        "encrypted_content": _MARK + text,
    }


def read_compaction(content: Any) -> str | None:
    """The summary; None if another server wrote it, or it is damaged."""
    if not isinstance(content, str) or not content.startswith(_MARK):
        return None
    try:
        return base64.urlsafe_b64decode(content.removeprefix(_MARK)).decode()
    except (binascii.Error, ValueError):
        return None
