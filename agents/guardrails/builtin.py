"""`RECOGNIZERS`: the built-in recognizers by family, each made for a policy."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agents.guardrails.blocklist import blocklist
from agents.guardrails.exfiltration import exfiltration
from agents.guardrails.hidden_text import hidden_text
from agents.guardrails.national_ids import national_ids
from agents.guardrails.personal_data import personal_data
from agents.guardrails.policy import Policy
from agents.guardrails.recognizer import Recognizer
from agents.guardrails.secret_formats import secret_formats
from agents.guardrails.special_tokens import special_tokens

RecognizerFactory = Callable[[Policy], Sequence[Recognizer]]

RECOGNIZERS: Mapping[str, RecognizerFactory] = MappingProxyType(
    {
        "personal_data": lambda policy: personal_data(policy.phone_regions),
        "national_ids": lambda policy: national_ids(),
        "secret_formats": lambda policy: secret_formats(),
        "hidden_text": lambda policy: hidden_text(),
        "special_tokens": lambda policy: special_tokens(),
        "exfiltration": lambda policy: exfiltration(policy.allowed_hosts),
        "blocklist": lambda policy: blocklist(policy.blocklist),
    }
)
