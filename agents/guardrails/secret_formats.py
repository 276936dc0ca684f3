"""Secrets with a known format, credentials in URLs, and values assigned to names such as `password`.

A known format is reported by itself. An assigned value must look random, so that placeholders, names and
ordinary words are left alone.
"""

import math
import re
from collections import Counter

from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, context, recognizer

_FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {  # pattern and hints by name
    "aws_access_key": (r"(?:AKIA|ASIA)[A-Z2-7]{16}", ("AKIA", "ASIA")),
    "github_token": (
        r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{70,255})",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    "gitlab_token": (
        r"gl(?:pat|ptt|rt|dt|cbt)-[A-Za-z0-9_\-]{20,64}",
        ("glpat-", "glptt-", "glrt-", "gldt-", "glcbt-"),
    ),
    "slack_token": (r"xox[abeoprs]-[A-Za-z0-9\-]{10,200}", ("xox",)),
    "slack_webhook": (
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,30}",
        ("hooks.slack.com",),
    ),
    "stripe_key": (r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,247}", ("k_live_", "k_test_")),
    "anthropic_key": (r"sk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_\-]{40,200}", ("sk-ant-",)),
    "openai_key": (
        r"sk-(?:proj-|svcacct-|admin-)[A-Za-z0-9_\-]{40,200}|sk-[A-Za-z0-9]{40,64}",
        ("sk-",),
    ),
    "google_api_key": (r"AIza[A-Za-z0-9_\-]{35}", ("AIza",)),
    "google_oauth": (
        r"(?:ya29\.[A-Za-z0-9_\-]{30,300}|GOCSPX-[A-Za-z0-9_\-]{28})",
        ("ya29.", "GOCSPX-"),
    ),
    "npm_token": (r"npm_[A-Za-z0-9]{36}", ("npm_",)),
    "pypi_token": (r"pypi-AgE[A-Za-z0-9_\-]{40,300}", ("pypi-AgE",)),
    "hugging_face_token": (r"hf_[A-Za-z0-9]{34}", ("hf_",)),
    "sendgrid_key": (r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}", ("SG.",)),
    "digitalocean_token": (r"do[opr]_v1_[a-f0-9]{64}", ("_v1_",)),
    "shopify_token": (r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", ("shp",)),
    "telegram_token": (r"\d{8,10}:AA[A-Za-z0-9_\-]{33}", (":AA",)),
    "mailchimp_key": (r"[0-9a-f]{32}-us\d{1,2}", ("-us",)),
    "discord_token": (r"[MNO][A-Za-z\d_\-]{23,25}\.[A-Za-z\d_\-]{6}\.[A-Za-z\d_\-]{27,38}", (".",)),
    "json_web_token": (
        r"eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,4000}\.[A-Za-z0-9_\-]{20,1000}",
        ("eyJ",),
    ),
    "azure_storage_key": (r"AccountKey=[A-Za-z0-9+/]{86}==", ("AccountKey=",)),
}
_LONGEST = 7100
_NAMED_VALUE = re.compile(
    r"(?i)(?:passwo?r?d|passphrase|passwd|pwd|secret|token(?!s)|api[_-]?key|access[_-]?key|auth[_-]?key|"
    r"private[_-]?key|credential|client[_-]?key)[a-z0-9_\-]{0,24}[\"'\]]{0,2}\s{0,3}(?:=>|:=|[:=])\s{0,3}[bru]?"
    r"[\"'`]?$"
)
_PLACEHOLDER = re.compile(
    r"(?i)^(?:[<$%{\[(*]|x{4,}|\.{3}|your|my[_-]?|example|changeme|placeholder|dummy|redacted|none|null|true|"
    r"false|os\.|env|process\.|self\.|settings\.|config\.|get|https?:|/)|example|placeholder|\(|\$\{|\{\{"
)


def secret_formats() -> tuple[Recognizer, ...]:
    """The recognizers."""
    return (
        *(
            recognizer(
                Kind.SECRET,
                name,
                rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])",
                alphabet=r"[A-Za-z0-9_.:/+=-]",
                max_chars=_LONGEST if name == "json_web_token" else 400,
                prefix=_prefix(pattern, hints),
                hints=hints,
                validate=_varied,
            )
            for name, (pattern, hints) in _FORMATS.items()
        ),
        recognizer(
            Kind.SECRET,
            "private_key",
            r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:\s|\\[nr])[A-Za-z0-9+/=\s\\:,.\-]{60,8000}?-----END [A-Z0-9 ]{0,40}-----"
            r"|(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{30,100}){1,60}"
            r"(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{1,29})?)",
            alphabet=r"[A-Za-z0-9+/=\s\\:,.\-]",
            max_chars=8200,
            prefix="-----BEGIN ",
        ),
        recognizer(
            Kind.SECRET,
            "password_in_url",
            r"(?<![A-Za-z0-9])[a-z][a-z0-9+.\-]{1,20}://[^\s:/@\"'<>]{0,60}:[^\s:/@\"'<>]{3,100}@[A-Za-z0-9\[]",
            alphabet=r"[^\s\"'<>]",
            max_chars=190,
            hints=("://",),
            validate=_password_in_url,
        ),
        recognizer(
            Kind.SECRET,
            "assigned_secret",
            r"(?<=[\"'`=:\s])(?=\w|[!@#%^&+/~.-])[^\s\"'`,;<>(){}\[\]]{8,200}(?![^\s\"'`,;<>)}\]])",
            alphabet=r"[^\s\"'`,;<>(){}\[\]]",
            max_chars=200,
            validate=_assigned_secret,
            confidence=0.8,
        ),
    )


def _prefix(pattern: str, hints: tuple[str, ...]) -> str:
    """The only hint, if every match begins with it: a stream then holds nothing back without it."""
    literal = pattern.replace("\\", "")
    return hints[0] if len(hints) == 1 and literal.startswith(hints[0]) else ""


def entropy(text: str) -> float:
    """Shannon entropy of the characters' frequencies, in bits a character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _varied(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Documentation writes tokens as `ghp_xxxx…`; a real one uses many characters."""
    tail = text[start:end][-16:]
    return (start, end) if len(set(tail)) >= 6 and "EXAMPLE" not in text[start:end] else None


def _password_in_url(text: str, start: int, end: int) -> tuple[int, int] | None:
    colon = text.index(":", text.index("://", start) + 3)
    password = text[colon + 1 : end - 2]
    if _PLACEHOLDER.search(password) or password.lower() in {"password", "pass", "pwd", "secret"}:
        return None
    return colon + 1, end - 2


def _assigned_secret(text: str, start: int, end: int) -> tuple[int, int] | None:
    value = text[start:end]
    if not any(character.isdigit() for character in value):
        return None
    if not _NAMED_VALUE.search(context(text, start, 80)):
        return None
    if ".." in value or _PLACEHOLDER.search(value) or entropy(value) < 3.0:
        return None
    # Identifiers and paths have separators between words; a quoted value may be a passphrase with them.
    quoted = text[start - 1] in "\"'`"
    if not quoted and re.fullmatch(r"[A-Za-z_]+\d{0,2}(?:[._/:-][A-Za-z]*\d{0,3})*", value):
        return None
    return start, end
