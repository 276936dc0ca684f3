"""Pydantic schemas of the bodies of Ollama's API (`/api/…`).

Ollama's clients send every option that they know as null, and servers there ignore what they do not know: so
do these. What is ignored is listed in the response header, as for every endpoint.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from app.server.wire.body import DefaultedBody
from app.server.wire.keep_alive import KeepAlive
from app.server.wire.schemas import MAX_LOGPROBS, MAX_MESSAGES

MAX_CONTEXT = 1 << 20
"""Token ids of an earlier answer that `/api/generate` takes back."""


class OllamaBody(DefaultedBody):
    """A body, or an object in one, whose unknown members are ignored and listed."""

    keeps_unknown: ClassVar[bool] = True


ModelName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class OllamaOptions(OllamaBody):
    """The `options` of a request: those of sampling. Others are about loading and have no effect."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "numa"),
            "set when the server starts",
        ),
        **dict.fromkeys(
            ("low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap", "use_mlock"),
            "set when the server starts",
        ),
        "embedding_only": "every model here generates",
        "repeat_last_n": "`repeat_penalty` looks at the whole prompt and answer",
        "penalize_newline": "a line feed is a token like others",
        "mirostat_tau": "a parameter of `mirostat`",
        "mirostat_eta": "a parameter of `mirostat`",
    }

    seed: int | None = None
    num_predict: int | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    temperature: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: Annotated[list[str] | None, BeforeValidator(_one_or_many)] = None


class OllamaFunction(OllamaBody):
    """The function of a call; arguments are an object."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class OllamaCall(OllamaBody):
    """A call in a message of the assistant; the client has dropped its id, if there was one."""

    id: str | None = None
    function: OllamaFunction


class OllamaMessage(OllamaBody):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[OllamaCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class OllamaGeneration(OllamaBody):
    """What `/api/chat` and `/api/generate` share."""

    model: ModelName
    stream: bool | None = None
    format: dict[str, Any] | str | None = None
    options: OllamaOptions | None = None
    keep_alive: KeepAlive | None = None
    think: bool | str | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None

    @property
    def streams(self) -> bool:
        """Whether the answer is streamed, which is Ollama's default."""
        return self.stream is not False


class OllamaChatRequest(OllamaGeneration):
    """Body of `POST /api/chat`."""

    messages: Annotated[list[OllamaMessage], Field(max_length=MAX_MESSAGES)] | None = None
    tools: list[dict[str, Any]] | None = None


class OllamaGenerateRequest(OllamaGeneration):
    """Body of `POST /api/generate`."""

    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    images: list[str] | None = None
    context: Annotated[list[int], Field(max_length=MAX_CONTEXT)] | None = None
    raw: bool | None = None


class OllamaEmbedRequest(OllamaBody):
    """Body of `POST /api/embed`, and of the older `POST /api/embeddings`, whose text is `prompt`."""

    model: ModelName
    input: Annotated[list[str] | None, BeforeValidator(_one_or_many)] = None
    prompt: str | None = None
    truncate: bool | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    options: OllamaOptions | None = None
    keep_alive: KeepAlive | None = None


class OllamaNameRequest(OllamaBody):
    """Body of `POST /api/show`, `/api/pull` and `DELETE /api/delete`: a model under one of two names."""

    model: ModelName | None = None
    name: ModelName | None = None
    stream: bool | None = None
    verbose: bool | None = None
