"""Signatures of reasoning in Anthropic's API: what a client sends back with the reasoning of an answer.

A client that asked for reasoning to be left out (`display: omitted`) gets a signature that holds the text, so
that the next turn has it. The signature of shown reasoning is a digest. Neither is a proof: whoever writes
a conversation writes its reasoning, too.
"""

import base64
import binascii
import hashlib

_TEXT, _DIGEST = "text.", "digest."


def signature_of(text: str, *, shown: bool) -> str:
    """The signature of a reasoning that the client was, or was not, shown."""
    data = text.encode()
    if not shown:
        return _TEXT + base64.b64encode(data).decode()
    return _DIGEST + base64.b64encode(hashlib.blake2b(data, digest_size=24).digest()).decode()


def omitted_text(signature: str) -> str:
    """The text in a signature of reasoning that was not shown; of any other signature, nothing."""
    if not signature.startswith(_TEXT):
        return ""
    try:
        return base64.b64decode(signature.removeprefix(_TEXT), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
