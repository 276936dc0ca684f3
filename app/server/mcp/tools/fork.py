"""The tool `fork`: other continuations of a call that is running."""

from typing import Annotated, Any

from pydantic import Field

from app.server.mcp.tool import Arguments, Output, Tool, ToolCall
from app.server.mcp.tools.generated import STREAMED, read_generated


class ForkArguments(Arguments):
    """What to fork, and what the forks change."""

    request_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=256,
            description="The running call: the request_id that was given to `chat` or `complete`.",
        ),
    ]
    n: Annotated[int, Field(ge=1, le=64, description="How many forks.")] = 1
    at: Annotated[
        int | None,
        Field(
            ge=1,
            lt=2**31,
            description="Tokens, the prompt's included, that the forks share with the call; all so far if "
            "left out.",
        ),
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, lt=2**31, description="The most tokens of each fork.")
    ] = None
    temperature: Annotated[
        float | None, Field(ge=0, le=100, description="The call's own if left out.")
    ] = None


class Forks(Output):
    """The texts of the forks, from the fork on."""

    continuations: Annotated[list[str], Field(description="One text for each fork.")]
    finish_reasons: list[str]
    completion_tokens: int

    @property
    def text(self) -> str:
        """The texts, numbered if there are several."""
        if len(self.continuations) == 1:
            return self.continuations[0]
        return "\n\n".join(
            f"[{number}] {text}" for number, text in enumerate(self.continuations, start=1)
        )


async def fork(call: ToolCall, given: ForkArguments) -> Forks:
    """Fork a running call."""
    body: dict[str, Any] = {"parent": given.request_id, "n": given.n, "seed": -1, **STREAMED}
    for name in ("at", "max_tokens", "temperature"):
        if getattr(given, name) is not None:
            body[name] = getattr(given, name)
    total = None if given.max_tokens is None else given.n * given.max_tokens
    found = await read_generated(
        call.api.events("POST", "/fork", body=body), call.progress, max_tokens=total
    )
    return Forks(
        continuations=[found.text(index) for index in range(given.n)],
        finish_reasons=[found.finish.get(index, "stop") for index in range(given.n)],
        completion_tokens=found.usage.get("completion_tokens", 0),
    )


FORK = Tool(
    "fork",
    "Fork a running answer",
    "Get other continuations of a `chat` or `complete` call that is running now, from the point that it has "
    "reached or an earlier one. The forks share its memory, so that nothing is read again.",
    ForkArguments,
    Forks,
    fork,
)
