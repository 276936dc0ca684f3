"""The error of each face."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer


class ErrorFields(Answer):
    """What is wrong."""

    message: str
    """One sentence."""
    type: str
    param: str | None
    """The field that is wrong."""
    code: str | None


class ErrorAnswer(Answer):
    """An error as OpenAI's clients read it."""

    error: ErrorFields


class AnthropicErrorFields(Answer):
    """What is wrong."""

    type: str
    message: str
    """One sentence."""
    details: dict[str, Any] | None = None


class AnthropicErrorAnswer(Answer):
    """An error as Anthropic's clients read it: under `/v1/messages`, or with their header."""

    type: Literal["error"]
    error: AnthropicErrorFields
    request_id: str | None


class OllamaErrorAnswer(Answer):
    """An error as Ollama's clients read it."""

    error: str
    """One sentence."""
