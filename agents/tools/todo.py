"""`todo`: the run's own list of what is left to do. It lives as long as the run."""

from typing import Any, Literal

from pydantic import Field

from agents.tools.arguments import Arguments
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput

_MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class TodoItem(Arguments):
    """One thing to do."""

    text: str = Field(min_length=1, max_length=200)
    state: Literal["open", "doing", "done"] = "open"


class TodoArguments(Arguments):
    """The whole list, which replaces the earlier one; none shows it."""

    items: list[TodoItem] | None = Field(default=None, max_length=50)


async def _todo(arguments: Any, context: ToolContext) -> ToolOutput:
    if arguments.items is not None:
        context.state["todo"] = [item.model_dump() for item in arguments.items]
    items: list[dict[str, str]] = context.state.get("todo", [])
    lines = [f"{_MARKS[item['state']]} {item['text']}" for item in items]
    return ToolOutput("\n".join(lines) or "The list is empty.", data={"items": list(items)})


TODO = Tool(
    name="todo",
    description="Show or replace the list of what is left to do.",
    arguments=TodoArguments,
    effects=frozenset({Effect.READ}),
    call=_todo,
)
