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


_OneOrMany = str | list[str] | None


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
        **dict.fromkeys(("mirostat", "tfs_z", "typical_p"), "a sampler that is not implemented"),
    }

    seed: int | None = None
    """Makes the answer reproducible."""
    num_predict: int | None = None
    """Most tokens of the answer; -1 and -2 are no limit."""
    top_k: int | None = None
    """As in chats."""
    top_p: float | None = None
    """As in chats."""
    min_p: float | None = None
    """As in chats."""
    temperature: float | None = None
    """As in chats."""
    repeat_penalty: float | None = None
    """As `repetition_penalty` of a chat."""
    presence_penalty: float | None = None
    """As in chats."""
    frequency_penalty: float | None = None
    """As in chats."""
    stop: Annotated[
        list[str] | None, BeforeValidator(_one_or_many, json_schema_input_type=_OneOrMany)
    ] = None
    """As in chats."""


class OllamaFunction(OllamaBody):
    """The function of a call; arguments are an object."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name of the function."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Its arguments."""


class OllamaCall(OllamaBody):
    """A call in a message of the assistant; the client has dropped its id, if there was one."""

    id: str | None = None
    """Id of the call."""
    function: OllamaFunction
    """What is called."""


class OllamaMessage(OllamaBody):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    """Who speaks."""
    content: str | None = None
    """The text."""
    thinking: str | None = None
    """Reasoning of the assistant."""
    images: list[str] | None = None
    """Images in base64."""
    tool_calls: list[OllamaCall] | None = None
    """Calls of the assistant."""
    tool_name: str | None = None
    """Of a result: the name of the called tool."""
    tool_call_id: str | None = None
    """Of a result: the id of the call."""


class OllamaGeneration(OllamaBody):
    """What `/api/chat` and `/api/generate` share."""

    model: ModelName
    """Name of the model, with or without `:latest`."""
    stream: bool | None = None
    """False gives one object instead of lines."""
    format: dict[str, Any] | str | None = None
    """`json`, or a JSON schema that the answer must match."""
    options: OllamaOptions | None = None
    """Sampling."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after this request: seconds, or a duration such as `5m`."""
    think: bool | str | None = None
    """Whether, or how much, the model reasons."""
    logprobs: bool | None = None
    """Add the log-probabilities of the answer's tokens."""
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    """With so many alternatives for each token."""

    @property
    def streams(self) -> bool:
        """Whether the answer is streamed, which is Ollama's default."""
        return self.stream is not False


class OllamaChatRequest(OllamaGeneration):
    """Body of `POST /api/chat`."""

    messages: Annotated[list[OllamaMessage], Field(max_length=MAX_MESSAGES)] | None = None
    """The conversation; without any the model is only loaded."""
    tools: list[dict[str, Any]] | None = None
    """Functions that the model may call."""


class OllamaGenerateRequest(OllamaGeneration):
    """Body of `POST /api/generate`."""

    without_effect: ClassVar[Mapping[str, str]] = {
        "template": "the model's own is used",
        **dict.fromkeys(("width", "height", "steps"), "no images are drawn"),
    }

    prompt: str | None = None
    """The prompt; without one the model is only loaded."""
    suffix: str | None = None
    """The text after the gap that the answer fills."""
    system: str | None = None
    """A message of the system."""
    images: list[str] | None = None
    """Images in base64."""
    context: Annotated[list[int], Field(max_length=MAX_CONTEXT)] | None = None
    """Token ids of an earlier answer, after which this prompt comes."""
    raw: bool | None = None
    """Take the prompt as it is, without a template."""


class OllamaEmbedRequest(OllamaBody):
    """Body of `POST /api/embed`, and of the older `POST /api/embeddings`, whose text is `prompt`."""

    model: ModelName
    """Name of the embedding model."""
    input: Annotated[
        list[str] | None, BeforeValidator(_one_or_many, json_schema_input_type=_OneOrMany)
    ] = None
    """A text or several (`/api/embed`)."""
    prompt: str | None = None
    """A text (`/api/embeddings`)."""
    truncate: bool | None = None
    """False refuses texts that are too long."""
    dimensions: Annotated[int, Field(ge=1)] | None = None
    """Numbers of a vector; the rest is cut off."""
    options: OllamaOptions | None = None
    """Nothing of it concerns embeddings."""
    keep_alive: KeepAlive | None = None
    """How long the model stays loaded after this request: seconds, or a duration such as `5m`."""


class OllamaNameRequest(OllamaBody):
    """Body of `POST /api/show`, `/api/pull` and `DELETE /api/delete`: a model under one of two names."""

    without_effect: ClassVar[Mapping[str, str]] = {"insecure": "certificates are always checked"}

    model: ModelName | None = None
    """Name of the model."""
    name: ModelName | None = None
    """As `model` (older name)."""
    stream: bool | None = None
    """Of a pull: false gives only the last line."""
    verbose: bool | None = None
    """All is shown always."""
