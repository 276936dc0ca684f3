"""Names that say that a value is secret, and whether a comparison of two values tells how much was right."""

import re

_STRONG = re.compile(
    r"(?i)(signature|(^|_)sign\b|^sign$|\bhmac\b|hmac|api_?key|secret|csrf|(^|_)mac$|_sig$|^sig$|password_?hash|hashed_?password|checksum_?secret)"
)
_DIGEST = re.compile(r"(?i)(^|_)(hex_?)?digest$|(^|_)expected(_|$)")
_TOKEN = re.compile(r"(?i)(^|_)(token|otp|passcode|pin_?code|session_?id|session_?key)$")
_HARMLESS = re.compile(
    r"(?i)type|kind|name|count|len|_id$|status|length|algorithm|alg$|size|version|header$|method|path|file|url|sha\d|md5|checksum|etag|version"
)
_ABOUT_ACCESS = re.compile(
    r"(?i)auth|secret|hmac|session|api_?key|passw|jwt|csrf|login|credential|bearer"
)


def words_of(name: str) -> str:
    """The last part of a name, its words joined by `_`, in lower case."""
    last = re.sub(r"\(.*$", "", name.strip(), flags=re.DOTALL)
    last = re.split(r"[.:>]", last)[-1]
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", last).lower()


def compares_secrets(left: str, right: str, text: str) -> bool:
    """Whether comparing these two expressions tells by its time how much of a secret was right.

    Args:
        left: the name of one side, such as `signature` or `sign(…)`.
        right: that of the other.
        text: the file, whose words decide whether a token is one of a login or of a parser.
    """
    names = words_of(left), words_of(right)
    if any(_HARMLESS.search(name) for name in names):
        return False
    if any(_STRONG.search(name) for name in names):
        return bool(
            _ABOUT_ACCESS.search(text) or re.search(r"(?i)sign\(|crypto|verify|webhook", text)
        )
    if all(_DIGEST.search(name) for name in names) and re.search(r"(?i)hmac|signature", text):
        return True
    return any(_TOKEN.search(name) for name in names) and bool(_ABOUT_ACCESS.search(text))
