"""Ids of calls, by which a result names its call."""

import hashlib
import secrets
import string

_LETTERS = string.ascii_letters + string.digits
SHORT_LENGTH = 9


def new_call_id() -> str:
    """A unique id."""
    return "call_" + "".join(secrets.choice(_LETTERS) for _ in range(24))


def new_short_id() -> str:
    """A unique id in the form that Mistral's chat templates demand: nine letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(SHORT_LENGTH))


def short_id(call_id: str) -> str:
    """An id in that form for one of another form, always the same."""
    if len(call_id) == SHORT_LENGTH and call_id.isascii() and call_id.isalnum():
        return call_id
    number = int.from_bytes(hashlib.blake2b(call_id.encode(), digest_size=8).digest())
    letters = []
    for _ in range(SHORT_LENGTH):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)
