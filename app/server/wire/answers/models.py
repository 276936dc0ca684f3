"""Answers about models."""

from typing import Any, Literal

from app.server.wire.answers.base import Answer, PageAnswer
from engine.api.snapshot import ModelInfo


class ModelObject(Answer):
    """A model, with the members of OpenAI's and of Anthropic's clients."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    type: Literal["model"]
    display_name: str
    created_at: str
    lifecycle: str
    status: str
    aliases: list[str] | None = None
    max_model_len: int | None = None
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    loading_progress: float | None = None
    details: ModelInfo | None = None


class ModelList(PageAnswer[ModelObject]):
    """The models that are served."""

    models: list[dict[str, Any]] | None = None
    """With `client_version`: the loaded models in Codex's form."""


class InstalledModel(Answer):
    """A model on this machine."""

    name: str
    size: int
    architecture: str
    parameters: int
    active_parameters: int | None = None
    """Those that a token uses, of a model with experts."""
    weight_format: str
    context_length: int
    problem: str
    """Why it cannot be loaded; empty if it can."""
    loaded: bool
    fits: bool


class InstalledModels(Answer):
    """The models on this machine."""

    data: list[InstalledModel]


class ModelChange(Answer):
    """A change that has begun."""

    status: str
    next_model: str | None
    beside_others: bool | None = None
