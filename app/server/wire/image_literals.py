"""`without_images`: a JSON body without the data of its images and files, to which the limits of text apply.

An image in a body is one long string without escapes: `"data:image/…;base64,…"`, or in Anthropic's API
the bare base64 as a member `data`. Other files have the same forms. Parsing it costs no more than copying it,
unlike other JSON of its length.
"""

import re

_BEGIN = re.compile(rb'"data(?:(:image/)|"\s*+:\s*+"|:[a-z]+/[\w.+-]{1,100};base64,)')
_QUOTE = b'"'
_BACKSLASH = b"\\"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


def without_images(body: bytes) -> bytes:
    r"""The body without the contents of those strings; the body itself if it has none.

    A string with an escape stays, because its parsing may cost more, except for `\/`, which some encoders
    write for a slash. The value of a member `data` that is no base64 stays, too: it is a text.
    """
    rest: list[bytes] = []
    kept = 0
    found = _BEGIN.search(body)
    while found:
        is_url = found[1] is not None
        start = found.start() + 1 if is_url else found.end()  # of the data
        end = body.find(_QUOTE, max(start, found.end()))
        if end < 0:
            break
        if _has_escapes(body, start, end) or not (is_url or _is_base64(body[start:end])):
            found = _BEGIN.search(body, found.end())
            continue
        rest.append(body[kept:start])
        kept = end
        found = _BEGIN.search(body, end + 1)
    return b"".join([*rest, body[kept:]]) if rest else body


def _has_escapes(body: bytes, start: int, end: int) -> bool:
    escapes = body.count(_BACKSLASH, start, end)
    return escapes > 0 and escapes != body.count(b"\\/", start, end)


def _is_base64(text: bytes) -> bool:
    return not text.replace(b"\\/", b"/").translate(None, _BASE64)
