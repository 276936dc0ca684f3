"""Rows of the model picker, and the sentences about models; pure functions."""

from app.text.safe_text import safe_line
from app.tui.numbers import compact, size
from app.tui.view.spans import Line, Span, fit
from engine.api.available_model import AvailableModel
from engine.api.snapshot import ModelInfo

NAME_CELLS = 24


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


def build_facts(model: AvailableModel) -> str:
    """A few words about a model: size, quantisation, and whether it is loaded or cannot be."""
    state = "loaded" if model.loaded else "" if model.fits else "does not fit"
    facts = (size(model.size), safe_line(model.weight_format), state)
    return ", ".join(filter(None, facts))


def build_loaded(model: ModelInfo | None) -> str:
    """One sentence about the loaded model and its executor."""
    if model is None:
        return "No model is loaded."
    drafts = "" if model.draft_model is None else f"; drafts by {safe_line(model.draft_model)}"
    return (
        f"{safe_line(model.name)}: {safe_line(model.architecture)}, {compact(model.parameters)} "
        f"parameters, {safe_line(model.weight_format)} in {size(model.weight_bytes)}, KV "
        f"{model.kv_dtype}, context {model.context_length}; {model.executor} executor, "
        f"{model.dispatch}, {model.threads} threads{drafts}."
    )


def build_answered_by(name: str) -> str:
    """The hint for a conversation whose last answer came from another installed model."""
    return safe_line(f"Answered by {name}; /model {name} switches to it.")
