"""`Policy`: which action each kind of detection asks for, on input and on output, and the limits of size."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from agents.guardrails.detection import Action, Kind

INPUT_ACTIONS: Mapping[Kind, Action] = MappingProxyType(
    {
        Kind.CARD: Action.REDACT,
        Kind.IBAN: Action.REDACT,
        Kind.NATIONAL_ID: Action.REDACT,
        Kind.SECRET: Action.REDACT,
        Kind.HIDDEN_TEXT: Action.REDACT,
        Kind.EMAIL: Action.FLAG,
        Kind.PHONE: Action.FLAG,
        Kind.IP_ADDRESS: Action.ALLOW,
        Kind.SPECIAL_TOKEN: Action.FLAG,
        Kind.EXFILTRATION: Action.ALLOW,
        Kind.LINK_WITH_DATA: Action.ALLOW,
        Kind.BLOCKLIST: Action.BLOCK,
        Kind.SIZE: Action.BLOCK,
        Kind.INJECTION: Action.FLAG,
        Kind.JUDGED: Action.FLAG,
    }
)
"""Defaults for what a model reads. Classifiers only flag: their errors must not refuse ordinary text."""

OUTPUT_ACTIONS: Mapping[Kind, Action] = MappingProxyType(
    {
        **INPUT_ACTIONS,
        Kind.EXFILTRATION: Action.REDACT,
        Kind.LINK_WITH_DATA: Action.FLAG,
        Kind.INJECTION: Action.ALLOW,
    }
)
"""Defaults for what a model writes."""

_CHECKED_INPUT = {
    Kind.HIDDEN_TEXT: Action.FLAG,
    Kind.SPECIAL_TOKEN: Action.FLAG,
    Kind.BLOCKLIST: Action.BLOCK,
    Kind.SIZE: Action.BLOCK,
}
_CHECKED_OUTPUT = {
    **_CHECKED_INPUT,
    Kind.HIDDEN_TEXT: Action.REDACT,
    Kind.EXFILTRATION: Action.REDACT,
    Kind.LINK_WITH_DATA: Action.FLAG,
}

MAX_ENTRY_CHARS = 200
"""Length of the longest entry of a blocklist."""

Mode = Literal["off", "check", "redact"]
"""How much of the guardrails conversations have.

off     nothing is looked for
check   what a reader cannot see or does not expect: hidden characters, links that send data, control tokens
redact  that, and personal data and secrets: the actions of `INPUT_ACTIONS` and `OUTPUT_ACTIONS`
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """Configuration of `Guardrails`.

    Attributes:
        input_actions: action by kind for text that a model reads.
        output_actions: action by kind for text that a model writes.
        blocklist: words and phrases, matched without regard to case, at word boundaries.
        allowed_hosts: hosts, with their subdomains, that links in output may carry data to.
        phone_regions: ISO 3166 codes of the regions whose national phone numbers are known.
        max_input_chars: length of the longest input.
        max_output_chars: length of the longest output.
    """

    input_actions: Mapping[Kind, Action] = field(default_factory=lambda: INPUT_ACTIONS)
    output_actions: Mapping[Kind, Action] = field(default_factory=lambda: OUTPUT_ACTIONS)
    blocklist: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    phone_regions: tuple[str, ...] = ("US", "GB", "IN", "DE")
    max_input_chars: int = 2_000_000
    max_output_chars: int = 2_000_000


def mode_actions(mode: Mode) -> tuple[Mapping[Kind, Action], Mapping[Kind, Action]]:
    """The actions of a mode, on input and on output."""
    if mode == "redact":
        return INPUT_ACTIONS, OUTPUT_ACTIONS
    given = (_CHECKED_INPUT, _CHECKED_OUTPUT) if mode == "check" else ({}, {})
    allowed = dict.fromkeys(Kind, Action.ALLOW)
    return {**allowed, **given[0]}, {**allowed, **given[1]}


def moderation_policy(policy: Policy) -> Policy:
    """The policy that reports, and changes nothing, of whatever a policy acts on in input or output."""
    reported = {
        kind: Action.ALLOW
        if policy.input_actions[kind] is policy.output_actions[kind] is Action.ALLOW
        else Action.FLAG
        for kind in Kind
    }
    # Longer texts are reported by the check itself, which has to end there.
    return replace(policy, input_actions={**reported, Kind.SIZE: Action.BLOCK})


def agent_policy(policy: Policy | None = None) -> Policy:
    """The policy of agents' runs: that of `redact`, without reports of ordinary addresses and numbers.

    Args:
        policy: the configured policy; its actions for `email` and `phone` stay if they are not the defaults.
    """
    given = Policy() if policy is None else policy

    def quiet(
        actions: Mapping[Kind, Action], defaults: Mapping[Kind, Action]
    ) -> dict[Kind, Action]:
        return {
            kind: Action.ALLOW
            if kind in (Kind.EMAIL, Kind.PHONE) and action is defaults[kind]
            else action
            for kind, action in actions.items()
        }

    return replace(
        given,
        input_actions=quiet(given.input_actions, INPUT_ACTIONS),
        output_actions=quiet(given.output_actions, OUTPUT_ACTIONS),
    )
