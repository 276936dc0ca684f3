"""Checks of a specification against what is registered."""

from collections.abc import Callable, Container
from typing import get_args

from agents.api.agent_spec import AgentSpec
from agents.api.errors import InvalidSpec
from agents.detectors.text.conventions import Kind
from agents.plugins.registry import Registry

MAX_CARD_TOKENS = 80
_SAMPLING = frozenset(
    [
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
    ]
)


def check_spec(
    spec: AgentSpec, registry: Registry, *, count_tokens: Callable[[str], int] | None = None
) -> None:
    """Check that everything the specification names exists.

    Args:
        spec: the specification.
        registry: what is registered.
        count_tokens: counts the tokens of the role card; None checks its characters only.

    Raises:
        InvalidSpec: an unknown tool, detector, output schema, sampling parameter or MCP server, or a card
            too long.
    """
    _refuse_unknown(spec, "tool", spec.tools, registry.tools)
    _refuse_unknown(spec, "detector", spec.detectors, registry.detectors)
    _refuse_unknown(spec, "output schema", (spec.output_schema,), registry.outputs)
    _refuse_unknown(spec, "kind of output", (spec.checks,), ("", "output", *get_args(Kind)))
    _refuse_unknown(spec, "sampling parameter", tuple(spec.sampling), _SAMPLING)
    _refuse_unknown(spec, "MCP server", spec.mcp_servers, registry.mcp)
    if spec.checks and "findings" not in registry.outputs[spec.output_schema].model_fields:
        raise InvalidSpec(
            f"{spec.path}: checks needs an output schema with findings; {spec.output_schema} has none."
        )
    if count_tokens is not None and (tokens := count_tokens(spec.card)) > MAX_CARD_TOKENS:
        raise InvalidSpec(
            f"{spec.path}: the role card has {tokens} tokens; at most {MAX_CARD_TOKENS} are allowed."
        )


def _refuse_unknown(
    spec: AgentSpec, kind: str, names: tuple[str, ...], known: Container[str]
) -> None:
    for name in names:
        if name not in known:
            raise InvalidSpec(f"{spec.path}: there is no {kind} {name}.")
