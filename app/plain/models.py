"""`/model` of line mode: the installed models as lines, and a change of the model with its progress."""

from collections.abc import Callable, Sequence

from app.slash.models import meant_model, read_model
from app.text.byte_size import format_size
from app.text.safe_text import safe_line
from engine.api.available_model import AvailableModel
from engine.api.errors import EngineUnavailable
from engine.api.snapshot import EngineSnapshot, EngineState
from engine.clients.engine_client import EngineClient

_REPORTED = 0.25
"""Share of the weights between two lines of progress."""


def build_models(models: Sequence[AvailableModel]) -> list[str]:
    """One line for each installed model: name, size, architecture, and why it cannot be loaded."""
    return [_line(model) for model in models]


def build_model(snapshot: EngineSnapshot) -> str:
    """The loaded model and its executor, or why there is none."""
    model = snapshot.model
    if model is None:
        reason = f": {safe_line(snapshot.last_error)}" if snapshot.last_error else ""
        return f"Engine: {snapshot.state.value}{reason}"
    return (
        f"Model: {safe_line(model.name)}, {model.weight_format}, {model.executor}/"
        f"{model.dispatch}, {model.threads} threads"
    )


def load(
    client: EngineClient, argument: str, *, say: Callable[[str], None], wait: Callable[[], None]
) -> None:
    """Load the model that `NAME` or `NAME now` names, and wait for it.

    Args:
        client: the engine.
        argument: the argument of `/model`.
        say: prints a line.
        wait: returns when the engine's state may have changed, after a short time at the latest.

    Raises:
        PravahaError: there is no such model, or it cannot be loaded.
    """
    name, drain_s = read_model(argument)
    name = meant_model(name, client.models())
    client.load_model(name, drain_s=drain_s)
    due = 0.0
    while (snapshot := client.snapshot()).changes_model or snapshot.state is EngineState.LOADING:
        if snapshot.state is EngineState.LOADING and snapshot.loading_progress >= due:
            say(f"Loading {safe_line(name)}: {snapshot.loading_progress:.0%}")
            due = snapshot.loading_progress + _REPORTED
        wait()
    if snapshot.model is None:
        raise EngineUnavailable(snapshot.last_error or f"{name} could not be loaded.")
    say(build_model(snapshot))


def _line(model: AvailableModel) -> str:
    parts = [safe_line(model.name) + (" (loaded)" if model.loaded else ""), format_size(model.size)]
    if model.architecture:
        parts += [safe_line(model.architecture), safe_line(model.weight_format)]
        parts.append(f"{model.context_length} tokens of context")
    line = ", ".join(parts)
    return f"{line}; cannot be loaded: {safe_line(model.problem)}" if model.problem else line
