"""Words for what guardrails found, without the text that was found."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from agents.guardrails.detection import Action, Detection, Kind

_NAMES: Mapping[Kind, tuple[str, str]] = {
    Kind.CARD: ("card number", "card numbers"),
    Kind.IBAN: ("bank account", "bank accounts"),
    Kind.PHONE: ("phone number", "phone numbers"),
    Kind.EMAIL: ("email address", "email addresses"),
    Kind.NATIONAL_ID: ("national id", "national ids"),
    Kind.IP_ADDRESS: ("IP address", "IP addresses"),
    Kind.SECRET: ("secret", "secrets"),
    Kind.HIDDEN_TEXT: ("run of hidden characters", "runs of hidden characters"),
    Kind.SPECIAL_TOKEN: ("spelled control token", "spelled control tokens"),
    Kind.EXFILTRATION: ("address that sends data", "addresses that send data"),
    Kind.LINK_WITH_DATA: ("link that carries data", "links that carry data"),
    Kind.BLOCKLIST: ("blocked phrase", "blocked phrases"),
    Kind.SIZE: ("text that is too long", "texts that are too long"),
    Kind.INJECTION: ("passage like a prompt injection", "passages like a prompt injection"),
    Kind.JUDGED: ("passage judged an injection", "passages judged injections"),
}


def name_of(kind: Kind) -> str:
    """The kind in plain words."""
    return _NAMES[kind][0]


def counted(counts: Mapping[Kind, int]) -> str:
    """Such as `1 card number, 2 secrets`."""
    return ", ".join(f"{count} {_NAMES[kind][count != 1]}" for kind, count in counts.items())


def counted_kinds(detections: Iterable[Detection]) -> str:
    """The detections by kind, as `counted` writes them."""
    return counted(Counter(one.kind for one in detections))


def refusal(blocked: Detection) -> str:
    """The sentence for a message that is not sent."""
    if blocked.kind is Kind.SIZE:
        return "The message is not sent: it is longer than the guardrails allow."
    return f"The message is not sent: it contains a {name_of(blocked.kind)}."


def remarks_of(
    detections: Iterable[Detection], action_of: Callable[[Kind], Action]
) -> tuple[str, ...]:
    """What was removed from a text and what is flagged in it, a few words each."""
    counts: dict[Action, dict[Kind, int]] = {}
    for one in detections:
        kinds = counts.setdefault(action_of(one.kind), {})
        kinds[one.kind] = kinds.get(one.kind, 0) + 1
    forms = {Action.REDACT: "{} removed", Action.FLAG: "contains {}", Action.BLOCK: "ended at {}"}
    return tuple(
        form.format(counted(counts[action])) for action, form in forms.items() if action in counts
    )
