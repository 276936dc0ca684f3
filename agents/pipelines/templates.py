"""Texts of a node with references: `{task}`, `{document}`, `{node}` and `{node.member}`."""

import json
import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\{([a-z][a-z0-9_-]*)(?:\.([a-z_]+))?\}")
MAX_CHARS = 60_000


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The template with references replaced; unknown ones stay as they are.

    Args:
        template: the text.
        values: texts and outputs (JSON members) by name. A reference to an output without a member is its
            main text, or its JSON.
    """
    return _REFERENCE.sub(lambda match: _value(match, values), template)[:MAX_CHARS]


def _value(match: re.Match[str], values: Mapping[str, Any]) -> str:
    name, member = match.groups()
    if name not in values:
        return match.group()
    value = values[name]
    if member is not None:
        value = value.get(member, "") if isinstance(value, Mapping) else ""
    elif isinstance(value, Mapping):
        value = next(
            (
                value[key]
                for key in ("text", "summary", "answer")
                if isinstance(value.get(key), str)
            ),
            value,
        )
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
