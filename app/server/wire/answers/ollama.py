"""Answers of Ollama's API. Durations are in nanoseconds."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer
from app.server.wire.answers.chat import ChosenTokenLogprob


class OllamaLine(Answer):
    """A line of a stream, or the whole answer: the last line, and the whole, have the counts and times."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None
    logprobs: list[ChosenTokenLogprob] | None = None


class OllamaCalledFunction(Answer):
    """A call of a function."""

    index: int
    name: str
    arguments: dict[str, Any]


class OllamaToolCall(Answer):
    """A call of a tool."""

    id: str
    function: OllamaCalledFunction


class OllamaChatMessage(Answer):
    """A message of the assistant."""

    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[OllamaToolCall] | None = None


class OllamaChatLine(OllamaLine):
    """A line of `/api/chat`."""

    message: OllamaChatMessage


class OllamaGenerateLine(OllamaLine):
    """A line of `/api/generate`."""

    response: str
    thinking: str | None = None
    context: list[int] | None = None


class OllamaEmbeddings(Answer):
    """The vectors of texts."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaEmbedding(Answer):
    """The vector of one text."""

    embedding: list[float]


class OllamaVersion(Answer):
    """The version of this program."""

    version: str


class OllamaModel(Answer):
    """A model."""

    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: dict[str, Any]


class OllamaModels(Answer):
    """Models."""

    models: list[OllamaModel]


class OllamaRunningModel(OllamaModel):
    """A model that is loaded."""

    expires_at: str | None = None
    size_vram: int | None = None
    context_length: int | None = None


class OllamaRunning(Answer):
    """The models that are loaded."""

    models: list[OllamaRunningModel]


class OllamaShown(Answer):
    """One model."""

    modelfile: str
    template: str
    details: dict[str, Any]
    model_info: dict[str, Any]
    capabilities: list[str]
    license: str | None = None
    parameters: str | None = None


class OllamaProgress(Answer):
    """A line of a download; the last one is `success`, or an error."""

    status: str
    digest: str | None = None
    total: int | None = None
    completed: int | None = None
