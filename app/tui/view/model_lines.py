"""Rows of the model picker, and the sentences about models; pure functions."""

from collections.abc import Iterable, Sequence

from app.text.safe_text import safe_line
from app.tui.numbers import compact, percent, size
from app.tui.view.spans import Line, Span, fit
from engine.api.available_model import AvailableModel
from engine.api.snapshot import EngineState, ModelInfo
from engine.conversations.tree import NodeKind, NodeView

NAME_CELLS = 24
SERVED_NAME_CELLS = 27


def build_model(model: AvailableModel, cells: int) -> list[Line]:
    """A star for the loaded one, name, size, parameters, quantisation, architecture and context.

    Below that the reason why it cannot be loaded, if it cannot.
    """
    name = fit(safe_line(model.name), NAME_CELLS).ljust(NAME_CELLS)
    style = "bold $accent" if model.loaded else "bold"
    facts = f"{size(model.size):>8}"
    if model.parameters:
        facts += f"  {compact(model.parameters):>5}  {safe_line(model.weight_format):<6}"
        facts += f"  {safe_line(model.architecture)}, {compact(model.context_length)} tokens"
        facts += _active(model)
    lines: list[Line] = [
        (
            Span("* " if model.loaded else "  ", "$accent"),
            Span(name, style),
            Span(facts, "$muted"),
        )
    ]
    if model.problem:
        lines.append(
            (Span(f"    {fit(safe_line(model.problem), max(20, cells - 6))}", "$warning"),)
        )
    return lines


def build_served_model(model: AvailableModel, cells: int) -> list[Line]:
    """A row of one of several models: a star for that of the branch, name, state, memory and what it is.

    Below that the reason why it cannot be loaded, if it cannot.
    """
    name = fit(safe_line(model.name), SERVED_NAME_CELLS).ljust(SERVED_NAME_CELLS)
    state, style = _served_state(model)
    taken = f"{size(model.memory_bytes)} used" if model.memory_bytes else f"{size(model.size)} file"
    facts = f"{taken:>13}"
    if model.parameters:
        facts += (
            f"  {compact(model.parameters):>5} {safe_line(model.weight_format)}{_active(model)}"
        )
    lines: list[Line] = [
        (
            Span("* " if model.loaded else "  ", "$accent"),
            Span(f"{name} ", "bold $accent" if model.loaded else "bold"),
            Span(state.ljust(12), style),
            Span(facts, "$muted"),
        )
    ]
    if model.problem:
        lines.append(
            (Span(f"    {fit(safe_line(model.problem), max(20, cells - 6))}", "$warning"),)
        )
    return lines


def _active(model: AvailableModel) -> str:
    """Of a model with experts, the number of weights that a token uses."""
    active = model.active_parameters
    return "" if active is None else f", {compact(active)} active"


def _served_state(model: AvailableModel) -> tuple[str, str]:
    """A word about the state of one of several models, and its style."""
    match model.status:
        case EngineState.READY.value:
            return "ready", "$status-ready"
        case EngineState.LOADING.value:
            return f"loading {percent(model.loading_progress)}", "$status-loading"
        case EngineState.DRAINING.value:
            return "finishing", "$status-loading"
        case EngineState.FAILED.value:
            return "failed", "$status-failed"
        case _:
            return "not loaded", "$muted"


def build_facts(model: AvailableModel) -> str:
    """A few words about a model: size, quantisation, and whether it is loaded or cannot be."""
    state = model.status or ("loaded" if model.loaded else "" if model.fits else "does not fit")
    facts = (size(model.size), safe_line(model.weight_format), state)
    return ", ".join(filter(None, facts))


def build_loaded(model: ModelInfo | None) -> str:
    """One sentence about the loaded model and its executor."""
    if model is None:
        return "No model is loaded."
    further = "" if model.draft_model is None else f"; drafts by {safe_line(model.draft_model)}"
    if model.continues_text:
        further += "; no chat template, it continues text"
    return (
        f"{safe_line(model.name)}: {safe_line(model.architecture)}, {build_parameters(model)}, "
        f"{safe_line(model.weight_format)} in {build_weights(model)}, KV "
        f"{model.kv_dtype}, context {model.context_length}; {model.executor} executor, "
        f"{model.dispatch}, {model.threads} threads{further}."
    )


def build_parameters(model: ModelInfo) -> str:
    """The number of weights, and of those that a token uses: "6.9G parameters (1.3G active)"."""
    active = model.active_parameters
    text = f"{compact(model.parameters)} parameters"
    return text if active is None else f"{text} ({compact(active)} active)"


def build_weights(model: ModelInfo) -> str:
    """The bytes of the weights, and of those that a token uses."""
    active = model.active_bytes
    text = size(model.weight_bytes)
    return text if active is None else f"{text} ({size(active)} per token)"


def build_answered_by(name: str) -> str:
    """The hint for a conversation whose last answer came from another installed model."""
    return safe_line(f"Answered by {name}; /model {name} switches to it.")


def build_gone(name: str, instead: str) -> str:
    """The hint for a branch whose model is not among several."""
    return safe_line(f"Answered by {name}, which is not installed here: {instead} goes on.")


def answer_models(path: Iterable[NodeView]) -> list[str]:
    """The models of a branch's answers, in the order of these."""
    return [
        node.model for node in path if node.kind is NodeKind.ASSISTANT and node.model is not None
    ]


def build_chosen(name: str, earlier: Sequence[str], *, is_loaded: bool) -> str:
    """What a choice of one of several models means for the open branch.

    Args:
        name: the model.
        earlier: the `answer_models` of the branch.
        is_loaded: whether it need not be loaded first.
    """
    text = f"{name} answers this branch from here on"
    if not is_loaded:
        text += ", once it is loaded"
    if any(one != name for one in earlier):
        text += f". It reads what {_others(name, earlier)} wrote as text, through its own template"
    return safe_line(f"{text}.")


def _others(name: str, earlier: Sequence[str]) -> str:
    others = set(earlier) - {name}
    return others.pop() if len(others) == 1 else "other models"
