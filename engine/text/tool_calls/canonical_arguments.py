"""`canonical_arguments`: text that is equal for equal arguments of calls."""

import json
from typing import Any


def canonical_arguments(arguments: Any) -> str:
    """Arguments, an object or its JSON text, as canonical JSON text.

    Text that is no JSON, or nests deeper than Python can follow, stays as it is.
    """
    if not isinstance(arguments, str):
        return _canonical(arguments)
    try:
        return _canonical(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
