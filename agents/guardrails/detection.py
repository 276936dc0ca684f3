"""`Detection`: one thing that a guardrail found in a text, and the `Action` that its kind asks for."""

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What happens to a text, from the mildest."""

    ALLOW = "allow"
    FLAG = "flag"
    REDACT = "redact"
    BLOCK = "block"

    @property
    def rank(self) -> int:
        """0 for `allow` to 3 for `block`."""
        return list(Action).index(self)


class Kind(StrEnum):
    """What is found. The value is also the word in a placeholder, such as `⟦EMAIL_1⟧`."""

    CARD = "card"
    IBAN = "iban"
    PHONE = "phone"
    EMAIL = "email"
    NATIONAL_ID = "national_id"
    IP_ADDRESS = "ip_address"
    SECRET = "secret"  # noqa: S105
    HIDDEN_TEXT = "hidden_text"
    SPECIAL_TOKEN = "special_token"  # noqa: S105
    EXFILTRATION = "exfiltration"
    LINK_WITH_DATA = "link_with_data"
    BLOCKLIST = "blocklist"
    SIZE = "size"
    INJECTION = "injection"
    JUDGED = "judged"


@dataclass(frozen=True, slots=True)
class Detection:
    """One detection.

    Attributes:
        kind: what was found.
        rule: the recognizer's name, such as `github_token`.
        start: offset of its first character in the checked text.
        end: offset behind its last character.
        text: the characters; never written to a log.
        confidence: probability that it is what `kind` says, from 0 to 1.
    """

    kind: Kind
    rule: str
    start: int
    end: int
    text: str
    confidence: float = 1.0
