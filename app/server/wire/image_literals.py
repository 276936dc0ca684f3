"""`without_images`: a JSON body without the data of its images, to which the limits of text apply.

An image in a body is one long string without escapes, `"data:image/…;base64,…"`. Parsing it costs no more
than copying it, unlike other JSON of its length.
"""

_BEGIN = b'"data:image/'
_QUOTE = b'"'
_BACKSLASH = b"\\"


def without_images(body: bytes) -> bytes:
    r"""The body without the contents of those strings; the body itself if it has none.

    A string with an escape stays, because its parsing may cost more, except for `\/`, which some encoders
    write for a slash.
    """
    at = body.find(_BEGIN)
    if at < 0:
        return body
    rest: list[bytes] = []
    kept = 0
    while at >= 0:
        end = body.find(_QUOTE, at + len(_BEGIN))
        if end < 0:
            break
        if _has_escapes(body, at, end):
            at = body.find(_BEGIN, at + 1)
            continue
        rest.append(body[kept : at + 1])
        kept = end
        at = body.find(_BEGIN, end + 1)
    return b"".join([*rest, body[kept:]])


def _has_escapes(body: bytes, start: int, end: int) -> bool:
    escapes = body.count(_BACKSLASH, start, end)
    return escapes > 0 and escapes != body.count(b"\\/", start, end)
