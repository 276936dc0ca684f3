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
_CREDENTIALS = re.compile(
    r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{60,}"
    r"|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bsk-[A-Za-z0-9_-]{32,}"
    r"|\b[rs]k_live_[A-Za-z0-9]{20,}"
    r"|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\bnpm_[A-Za-z0-9]{36}\b"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
)


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
    if len(text) > MAX_CHECKED_CHARS or _CREDENTIALS.search(text):
        return True
    return any(next(one.find(text), None) is not None for one in _recognizers())


@cache
def _recognizers() -> tuple[Recognizer, ...]:
    made = (one for name in _FAMILIES for one in RECOGNIZERS[name](Policy()))
    return tuple(one for one in made if one.kind in _PRIVATE_KINDS)
