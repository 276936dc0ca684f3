"""Secrets with a known format, credentials in URLs, and values assigned to names such as `password`.

A known format is reported by itself. An assigned value must look random, so that placeholders, names and
ordinary words are left alone.
"""

import math
import re
from collections import Counter
from functools import cache, cached_property
from pathlib import Path

from agents.api.data_file import Entry, read_entries
from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, context, recognizer


class SecretFormat(Entry):
    """The format of one kind of credentials (`secret_formats.yaml`).

    Attributes:
        id: unique, such as `github_token`.
        title: what it is, for people.
        pattern: bounded; its group `value`, if it has one, is the secret alone.
        hints: texts of which every match contains one.
        longest: characters of the longest match.
        bad: a credential of this format.
        good: a text that looks like one, but stands for it in documentation.
    """

    id: str
    title: str
    pattern: str
    hints: tuple[str, ...]
    longest: int = 400
    bad: str
    good: str

    @cached_property
    def expression(self) -> str:
        """The pattern of whole words."""
        return rf"(?<![A-Za-z0-9_])(?:{self.pattern})(?![A-Za-z0-9_])"

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """`expression`, compiled."""
        return re.compile(self.expression)

    def find(self, text: str) -> str:
        """The first credential of this format in a text, or empty; texts of documentation do not count."""
        if not any(hint in text for hint in self.hints):
            return ""
        for match in self.compiled.finditer(text):
            value = match["value"] if "value" in self.compiled.groupindex else match[0]
            if len(set(value[4:])) > 5:
                return str(value)
        return ""


@cache
def formats() -> tuple[SecretFormat, ...]:
    """All formats; read at the first call."""
    return tuple(read_entries(Path(__file__).with_suffix(".yaml"), SecretFormat))


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
                one.id,
                one.expression,
                alphabet=r"[A-Za-z0-9_.:/+=-]",
                max_chars=one.longest,
                prefix=_prefix(one.pattern, one.hints),
                hints=one.hints,
                validate=_varied,
            )
            for one in formats()
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
