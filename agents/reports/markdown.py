"""A run's result as Markdown: the message that enters a conversation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.outputs.base import found_instead
from agents.outputs.finding_markdown import finding_markdown
from agents.outputs.verdict import SHOWN_BY_HEADLINE, headline_of

MAX_FINDINGS = 30
MAX_CHARS = 20_000
_TEXT_MEMBERS = ("cannot_do", "text", "summary", "answer", "diff", "reason")


def markdown_of(name: str, result: Mapping[str, Any]) -> str:
    """Markdown of the JSON members of a `RunResult` or `PipelineResult`.

    Args:
        name: of the agent or pipeline.
        result: as `RunResult.fields` or `PipelineResult.fields`.
    """
    parts = [f"**{name}**: {_summary(result)}"]
    output = result.get("output") or {}
    findings: Sequence[Mapping[str, Any]] = result.get("findings") or ()
    items = [finding_markdown(one) for one in findings[:MAX_FINDINGS]]
    if len(findings) > MAX_FINDINGS:
        items.append(f"- and {len(findings) - MAX_FINDINGS} more findings")
    parts += ["\n".join(items)] if items else []
    headline = headline_of(output)
    parts += [f"**{headline}**"] if headline else []
    said = SHOWN_BY_HEADLINE if headline else frozenset()
    parts += [
        _member(member, value)
        for member, value in output.items()
        if _has(value) and member not in said
    ]
    parts += [f"*{note}*" for note in (result.get("notes") or ())[:10]]
    text = "\n\n".join(parts)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n\n…"


def _summary(result: Mapping[str, Any]) -> str:
    findings = result.get("findings") or ()
    counts: dict[str, int] = {}
    for one in findings:
        counts[one["severity"]] = counts.get(one["severity"], 0) + 1
    found = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    found = found or found_instead(result.get("output") or {})
    state = str(result.get("state", "")).replace("_", " ")
    error = f". {result['error']}" if result.get("error") else ""
    return f"{found} ({state}){error}"


def _has(value: Any) -> bool:
    return value not in (None, "", [], {}, False) and value != 0


def _member(name: str, value: Any) -> str:
    title = name.replace("_", " ")
    if isinstance(value, str):
        if name == "diff":
            return f"```diff\n{value}\n```"
        return value if name in _TEXT_MEMBERS else f"**{title}**: {value}"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join([f"**{title}**", *(f"- {one}" for one in value)])
    if isinstance(value, list | dict):
        return f"**{title}**\n```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"
    return f"**{title}**: {value}"
