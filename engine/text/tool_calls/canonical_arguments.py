"""`canonical_arguments`: text that is equal for equal arguments of calls."""

import json
from typing import Any


def canonical_arguments(arguments: Any) -> str:
    """Arguments, an object or its JSON text, as canonical JSON text; text that is no JSON as it is."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except ValueError:
            return arguments
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
