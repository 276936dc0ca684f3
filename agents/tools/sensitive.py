"""Labels of texts: private by a file's name or by what the text holds, local and untrusted if it is a file's.

Private are secrets with a known form, values assigned to names such as `password`, and card, account and
national identification numbers whose check digits hold (`agents.guardrails`). Names, addresses and free text
about people are not recognized; that they are local keeps them from being sent unasked.
"""

import re
from functools import cache
from pathlib import PurePosixPath

from agents.guardrails.builtin import RECOGNIZERS
from agents.guardrails.detection import Kind
from agents.guardrails.policy import Policy
from agents.guardrails.recognizer import Recognizer
from agents.guardrails.secret_formats import formats
from agents.tools.tool import Taint

FILE_TAINT = frozenset({Taint.UNTRUSTED, Taint.LOCAL})
"""Labels of everything read from files and history: not public, and perhaps written by somebody else."""
MAX_CHECKED_CHARS = 200_000
"""A longer text is private unchecked: the recognizers take about a microsecond a character."""
_PRIVATE_KINDS = frozenset({Kind.SECRET, Kind.CARD, Kind.IBAN, Kind.NATIONAL_ID})
_FAMILIES = ("personal_data", "national_ids", "secret_formats")

_NAMES = re.compile(
    r"\.env(\..+)?|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.*\.(pem|key|p12|pfx|keystore|jks|kdbx)|(secrets?|credentials?)(\.(json|ya?ml|toml|ini|txt))?",
    re.IGNORECASE,
)
_FOLDERS = frozenset([".ssh", ".aws", ".gnupg", ".kube", ".docker"])
_EXAMPLES = (".example", ".sample", ".template")
_KEY_HEADER = re.compile(r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----")


def is_private_path(path: str) -> bool:
    """Whether a file of this name usually holds credentials."""
    parts = PurePosixPath(path).parts
    if not parts or parts[-1].endswith(_EXAMPLES):
        return False
    return bool(_NAMES.fullmatch(parts[-1])) or bool(_FOLDERS & set(parts))


def taint_of(text: str, path: str = "") -> frozenset[Taint]:
    """Private if the file's name or the text says so, otherwise trusted."""
    if is_private_path(path) or holds_private_data(text):
        return frozenset({Taint.PRIVATE})
    return frozenset({Taint.TRUSTED})


def file_taint(text: str, path: str = "") -> frozenset[Taint]:
    """Labels of a text that was read from a file, from history or from a document."""
    return FILE_TAINT | (taint_of(text, path) - {Taint.TRUSTED})


def holds_private_data(text: str) -> bool:
    """Whether the text holds a secret or a checked personal number, or is too long to tell."""
    if len(text) > MAX_CHECKED_CHARS or _KEY_HEADER.search(text):
        return True
    if any(one.compiled.search(text) for one in formats() if any(h in text for h in one.hints)):
        return True
    return any(next(one.find(text), None) is not None for one in _recognizers())


@cache
def _recognizers() -> tuple[Recognizer, ...]:
    made = (one for name in _FAMILIES for one in RECOGNIZERS[name](Policy()))
    return tuple(one for one in made if one.kind in _PRIVATE_KINDS)
