"""One finding as a list item of Markdown."""

from collections.abc import Mapping
from typing import Any


def finding_markdown(one: Mapping[str, Any]) -> str:
    """A list item of a finding, given as its JSON members, with its quote."""
    place = f"{one['file']}:{one['line']}" if one["line"] else one["file"]
    cwe = f", CWE-{one['cwe']}" if one.get("cwe") else ""
    lines = [f"- **{one['severity']}** `{place}` {one['message']} ({one['rule']}{cwe})"]
    quote = one.get("evidence") or ""
    if quote and "\n" not in quote and "`" not in quote:
        lines.append(f"  `{quote}`")
    elif quote:
        fence = "```" if "```" not in quote else "~~~~"
        lines += [f"  {fence}", *(f"  {line}" for line in quote.splitlines()), f"  {fence}"]
    return "\n".join(lines)
