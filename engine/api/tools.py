"""Tools that a request offers to the model, and whether it must, may or must not call them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

CallFormName = Literal[
    "apriel", "auto", "command", "deepseek", "deepseek-v3.2", "deepseek-v4", "function-gemma", "gemma4",
    "generic", "glm", "granite", "harmony", "hermes", "kimi", "lfm2", "llama-json", "llama-python",
    "minicpm", "minimax", "mistral", "mistral-args", "nemotron", "olmo", "phi4", "qwen-xml", "seed",
]  # fmt: skip
"""Forms in which models write calls (`engine.text.tool_calls`); `auto` is that of the chat template."""

ToolDecision = Literal["auto", "model"]
"""Who decides whether an answer calls a tool: with `auto` probabilities, if the model was measured
(`engine.text.tool_calls.decision`); with `model` what the model writes."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the caller runs when the model asks for it.

    Attributes:
        name: what the model calls it by; unique in a request.
        description: what it does, in words for the model; may be empty.
        parameters: JSON schema of the arguments, of type `object`; empty for none.
        strict: whether the caller asked for arguments that match the schema exactly.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False

    @property
    def properties(self) -> Mapping[str, Any]:
        """Schemas of the arguments by name, as far as they are declared."""
        declared = self.parameters.get("properties")
        return declared if isinstance(declared, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the model may call in its answer.

    Attributes:
        mode: `auto`, it may; `required`, it must call one; `none`, it must not.
        names: of the tools that may be called; None allows all.
        parallel: whether it may call more than one.
    """

    mode: Literal["auto", "required", "none"] = "auto"
    names: frozenset[str] | None = None
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model has written it; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class CallState(StrEnum):
    """How a call has ended."""

    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call; `text` is what the model reads, also of one that failed or was denied."""

    call: ToolCall
    text: str
    state: CallState
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolRound:
    """The results of the calls of one answer, in their order.

    Attributes:
        results: of all calls.
        may_call: whether the next answer may have calls; False after the last round, and after one that had
            nothing but repeated calls.
    """

    results: Sequence[CallResult]
    may_call: bool


class OpenTools(Protocol):
    """The tools of one answer. Every method may be called from any thread, and none waits."""

    def offered(self) -> "Future[Sequence[Tool]]":
        """The tools as the model is offered them, once their MCP servers are connected.

        The future fails with a `PravahaError`.
        """
        ...

    def act(self, calls: Sequence[ToolCall]) -> "Future[ToolRound]":
        """Make the calls of an answer, after `offered`; cancelling the future stops them."""
        ...

    def close(self) -> None:
        """Stop everything. Idempotent."""
        ...
