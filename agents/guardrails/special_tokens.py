"""Spellings of models' control tokens in text: an attempt to end a turn or to begin the system's.

The engine's chat encoding never turns contents into control tokens (`engine.text.control_tokens`); this
recognizer reports the attempt, also for models behind other servers.
"""

from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import Recognizer, recognizer


def special_tokens() -> tuple[Recognizer, ...]:
    """The recognizers."""
    return (
        recognizer(
            Kind.SPECIAL_TOKEN,
            "control_token",
            r"<(?:\|[A-Za-z0-9_]{2,40}\||｜[A-Za-z0-9_▁]{2,40}｜|(?:start|end)_of_turn|"
            r"(?:begin|end)_of_(?:text|sentence))>|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\]",
            alphabet=r"[A-Za-z0-9_▁<>|｜\[\]/]",
            max_chars=50,
            opening=r"[<\[]",
            hints=("<|", "<｜", "_of_", "SYS>>", "INST]", "_TOOLS]", "TOOL_CALLS]", "_PROMPT]"),
        ),
    )
