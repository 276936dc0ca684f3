"""The tool `complete`: a text continued by the model, without a chat template."""

from typing import Annotated, Any

from pydantic import Field

from app.server.mcp.tool import Tool, ToolCall
from app.server.mcp.tools.generated import (
    STREAMED,
    GeneratedText,
    SamplingArguments,
    read_generated,
)
from app.server.mcp.tools.served_models import ModelName, generating_model

DEFAULT_MAX_TOKENS = 256


class CompleteArguments(SamplingArguments):
    """What to continue."""

    prompt: Annotated[str, Field(min_length=1, description="The text to continue.")]
    suffix: Annotated[
        str | None,
        Field(description="The text behind the gap, for models that fill in the middle."),
    ] = None
    max_tokens: Annotated[
        int, Field(ge=1, lt=2**31, description="The most tokens of the continuation.")
    ] = DEFAULT_MAX_TOKENS
    model: ModelName = None


async def complete(call: ToolCall, given: CompleteArguments) -> GeneratedText:
    """Continue a text."""
    body: dict[str, Any] = {
        "model": await generating_model(call.api, given.model),
        "prompt": given.prompt,
        "max_tokens": given.max_tokens,
        **given.sampling_fields(),
        **STREAMED,
    }
    if given.suffix is not None:
        body["suffix"] = given.suffix
    chunks = call.api.events("POST", "/v1/completions", body=body)
    found = await read_generated(chunks, call.progress, max_tokens=given.max_tokens)
    return found.output()


COMPLETE = Tool(
    "complete",
    "Continue a text",
    "Let the user's own language model continue a text as it stands, or fill a gap in code. For questions "
    "and instructions use `chat`.",
    CompleteArguments,
    GeneratedText,
    complete,
)
