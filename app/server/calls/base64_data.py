"""`decode_base64`: the bytes of images and files that a request has in base64."""

import base64

_DECODED_CHARS = 1 << 20
"""Characters that are decoded by one call, which holds the interpreter's lock; a multiple of 4."""


def decode_base64(text: str, start: int = 0) -> bytes:
    """The bytes of a text in base64 from character `start` on.

    Raises:
        ValueError: it is damaged.
    """
    padding = text.find("=", start)
    if (len(text) - start) % 4 or 0 <= padding < len(text) - 2:
        raise ValueError("the length or the padding is wrong")
    return b"".join(
        base64.b64decode(text[at : at + _DECODED_CHARS], validate=True)
        for at in range(start, len(text), _DECODED_CHARS)
    )
