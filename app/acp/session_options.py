"""What a client may set for a session: its mode, and the model where there are several."""

from typing import Any

from acp.schema import (
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from app.acp.session import AcpSession

_MODES = (
    SessionMode(id="ask", name="Ask", description="Changes, commands and requests are asked."),
    SessionMode(id="auto", name="Auto", description="Tools are called without questions."),
    SessionMode(id="deny", name="Deny", description="Tools may only read."),
)


def modes_of(session: AcpSession) -> SessionModeState:
    """The modes, and that of the session."""
    return SessionModeState(current_mode_id=session.mode, available_modes=list(_MODES))


def options_of(session: AcpSession) -> list[Any]:
    """The options with their values: `mode`, and `model` where there are several."""
    modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in _MODES
    ]
    options = [_select("mode", "Mode", session.mode, modes)]
    names, chosen = session.models
    if chosen is not None and len(names) > 1:
        models = [SessionConfigSelectOption(value=name, name=name) for name in names]
        options.append(_select("model", "Model", chosen, models))
    return options


def _select(
    name: str, title: str, value: str, options: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        id=name, name=title, category=name, type="select", current_value=value, options=options
    )
