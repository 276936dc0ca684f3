"""`Tool`: a tool of the MCP server, with its arguments and its result as pydantic models."""

import difflib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from app.server.mcp.api_client import ApiClient
from app.server.mcp.plain_schema import plain_schema
from app.server.mcp.progress import Progress
from app.server.mcp.user_data import UserData
from engine.api.errors import PravahaError


class ToolError(PravahaError):
    """A call that cannot be answered; the sentence says what to do instead."""


class Arguments(BaseModel):
    """Arguments of a tool. An unknown one is refused, because a misspelt one would have no effect."""

    model_config = ConfigDict(extra="forbid")


class Output(BaseModel):
    """The structured result of a tool; `text` is what a model reads of it."""

    @property
    def text(self) -> str:
        """The result as text: its JSON, unless the tool has better words."""
        return self.model_dump_json(exclude_none=True)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a tool works with.

    Attributes:
        api: the API, as the caller of the tool.
        progress: notifications for the caller.
        user: the user's own collections and conversations; None for the clients of a server.
    """

    api: ApiClient
    progress: Progress
    user: UserData | None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: its name.
        title: its name for people.
        description: what it does, for the model that decides to call it.
        arguments: what it takes.
        output: what it returns.
        run: does the work. Raises `PravahaError` with a sentence that a model can act on.
        read_only: whether it changes nothing but caches.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: type[Output]
    run: Callable[[ToolCall, Any], Coroutine[Any, Any, Output]]
    read_only: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, the required ones first."""
        schema = plain_schema(self.arguments.model_json_schema())
        required, properties = schema.get("required", ()), schema["properties"]
        order = [*required, *(name for name in properties if name not in required)]
        return {**schema, "properties": {name: properties[name] for name in order}}

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of the structured result."""
        return plain_schema(self.output.model_json_schema())

    def parse(self, given: Mapping[str, Any]) -> Arguments:
        """The arguments of a call. Null is as good as nothing.

        Raises:
            ToolError: what is wrong with them, and what the tool takes.
        """
        try:
            return self.arguments.model_validate(
                {name: value for name, value in given.items() if value is not None}
            )
        except ValidationError as error:
            problems = "; ".join(self._problem(one) for one in error.errors(include_url=False))
            names = ", ".join(self.input_schema["properties"]) or "no arguments"
            raise ToolError(f"{self.name} takes {names}; {problems}.") from error

    def _problem(self, error: Any) -> str:
        where = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            near = difflib.get_close_matches(where, self.arguments.model_fields, n=1)
            return f"there is no argument {where[:60]!r}" + (
                f" (did you mean {near[0]!r}?)" if near else ""
            )
        if error["type"] == "missing":
            return f"the argument {where!r} is missing"
        reason = str(error["msg"]).removeprefix("Value error, ")
        return f"{where}: {reason[0].lower()}{reason[1:]}" if where else reason
