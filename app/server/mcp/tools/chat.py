"""The tool `chat`: one answer of the model."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.server.mcp.tool import Tool, ToolCall
from app.server.mcp.tools.generated import (
    STREAMED,
    GeneratedText,
    SamplingArguments,
    read_generated,
)
from app.server.mcp.tools.served_models import ModelName, generating_model

DEFAULT_MAX_TOKENS = 1024


class EarlierMessage(BaseModel):
    """A message before the one to answer."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class ChatArguments(SamplingArguments):
    """What to say to the model."""

    message: Annotated[str, Field(min_length=1, description="What the model is to answer.")]
    system: Annotated[str | None, Field(description="How the model is to behave.")] = None
    history: Annotated[
        list[EarlierMessage] | None,
        Field(description="The messages before, oldest first. The model remembers nothing itself."),
    ] = None
    answer_schema: Annotated[
        dict[str, Any] | None,
        Field(description="A JSON schema: the answer is JSON that matches it."),
    ] = None
    max_tokens: Annotated[
        int, Field(ge=1, lt=2**31, description="The most tokens of the answer.")
    ] = DEFAULT_MAX_TOKENS
    model: ModelName = None

    def body(self, model: str) -> dict[str, Any]:
        """The request to the API."""
        messages = [
            *([{"role": "system", "content": self.system}] if self.system else []),
            *(one.model_dump() for one in self.history or ()),
            {"role": "user", "content": self.message},
        ]
        body = {
            "model": model,
            "messages": messages,
            "max_tokens": self.max_tokens,
            **self.sampling_fields(),
        }
        if self.answer_schema is not None:
            form = {"name": "answer", "schema": self.answer_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body


async def chat(call: ToolCall, given: ChatArguments) -> GeneratedText:
    """Ask the model."""
    model = await generating_model(call.api, given.model)
    chunks = call.api.events("POST", "/v1/chat/completions", body={**given.body(model), **STREAMED})
    found = await read_generated(chunks, call.progress, max_tokens=given.max_tokens)
    return found.output()


CHAT = Tool(
    "chat",
    "Ask the local model",
    "Ask the user's own language model and get its answer. It is smaller than you may be used to: give it "
    "everything it needs to know in the message, and ask for one thing at a time.",
    ChatArguments,
    GeneratedText,
    chat,
)
