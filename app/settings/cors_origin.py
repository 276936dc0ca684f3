"""Origins of web pages as `--cors-origin` takes them: the words that a browser puts into `Origin`."""

import re

ANY_PAGE = frozenset({"*", "null"})
"""Origins that any web page can have. Browsers send `null` for local files, and for frames in a sandbox,
which every page can make."""

_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?"
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def check_origin(text: str) -> str:
    """An origin as browsers send it: in lower case, without a path and without the usual port.

    Raises:
        ValueError: it is not an origin.
    """
    origin = text.strip().lower().removesuffix("/")
    if origin in ANY_PAGE:
        return origin
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        raise ValueError(
            "should be an origin such as https://chat.example or http://localhost:3000, or *, "
            f"not {text!r:.80}"
        )
    if match["port"] == _DEFAULT_PORTS.get(match["scheme"]):
        return f"{match['scheme']}://{match['host']}"
    return origin
