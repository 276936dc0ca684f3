"""`card_text`: name, organization and addresses of a business card (vCard)."""

import re

from engine.retrieval.parsing.content_lines import content_lines, unescaped

_SHOWN = {
    "FN": "Name", "ORG": "Organization", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "E-mail",
    "ADR": "Address", "URL": "Web", "BDAY": "Birthday", "NOTE": "Note",
}  # fmt: skip
_STRUCTURED = frozenset(["ORG", "ADR"])


def card_text(text: str) -> str:
    """The cards, one line a property."""
    lines: list[str] = []
    for name, _, value in content_lines(text):
        if name == "BEGIN" and lines:
            lines.append("")
        elif name in _SHOWN:
            parts = re.split(r"(?<!\\);", value) if name in _STRUCTURED else [value]
            shown = ", ".join(filter(None, map(unescaped, parts)))
            if shown:
                lines.append(f"{_SHOWN[name]}: {shown}")
    return "\n".join(lines)
