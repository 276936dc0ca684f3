"""Which files and texts are labelled private: credential files by name, credentials by their fixed forms."""

import re
from pathlib import PurePosixPath

from agents.tools.tool import Taint

_NAMES = re.compile(
    r"\.env(\..+)?|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.*\.(pem|key|p12|pfx|keystore|jks|kdbx)|(secrets?|credentials?)(\.(json|ya?ml|toml|ini|txt))?",
    re.IGNORECASE,
)
_FOLDERS = frozenset([".ssh", ".aws", ".gnupg", ".kube", ".docker"])
_EXAMPLES = (".example", ".sample", ".template")
_CREDENTIALS = re.compile(
    r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"
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
    """Private if the file's name or a credential in the text says so, otherwise trusted."""
    if is_private_path(path) or _CREDENTIALS.search(text):
        return frozenset({Taint.PRIVATE})
    return frozenset({Taint.TRUSTED})
