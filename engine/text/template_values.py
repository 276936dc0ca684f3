"""Text of the values of a chat template: plain data only, within the budget."""

from typing import Any

from jinja2 import Undefined

from engine.text.template_budget import TemplateLimitError, current_budget


def text_of(value: Any) -> str:
    """The value as text, if it is plain data within the size limit."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list | tuple | dict):
        check_plain(value)
    elif not isinstance(value, int | float | Undefined | None):
        raise TemplateLimitError(f"it prints a {type(value).__name__}, which is not text")
    text = str(value)
    current_budget().text(len(text))
    return text


def check_plain(value: Any) -> None:
    """Reject a nested value that contains anything but data, or whose text would be too large."""
    budget, length, pending, seen = current_budget(), 0, [value], 0
    while pending:
        item = pending.pop()
        seen += 1
        if isinstance(item, dict):
            pending.extend((*item.keys(), *item.values()))
        elif isinstance(item, list | tuple):
            pending.extend(item)
        elif isinstance(item, str):
            length += len(item)
        elif not isinstance(item, int | float | None):
            raise TemplateLimitError(f"it prints a {type(item).__name__}, which is not data")
        if seen % 1024 == 0:
            budget.nodes(seen + len(pending))
    budget.nodes(seen)
    budget.text(length)
