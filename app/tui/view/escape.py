"""The effect of Esc: it undoes exactly one thing, the first that applies, and never quits."""

from dataclasses import dataclass
from enum import Enum, auto


class EscapeEffect(Enum):
    """The things that Esc can undo, in order of precedence."""

    CLOSE_POPUP = auto()
    RETURN_TO_NOW = auto()
    RESTORE_PANE = auto()
    DROP_SELECTION = auto()
    LEAVE_EDIT = auto()
    KEEP_UNSENT = auto()
    WITHDRAW_QUEUED = auto()
    STOP = auto()
    NAVIGATE = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class EscapeState:
    """Which things can be undone now."""

    popup: bool = False
    in_past: bool = False
    maximised: bool = False
    selection: bool = False
    editing: bool = False
    reading: bool = False
    queued: bool = False
    generating: bool = False
    prompting: bool = False


def escape_effect(state: EscapeState) -> EscapeEffect:
    """The thing to undo."""
    for applies, effect in (
        (state.popup, EscapeEffect.CLOSE_POPUP),
        (state.in_past, EscapeEffect.RETURN_TO_NOW),
        (state.maximised, EscapeEffect.RESTORE_PANE),
        (state.selection, EscapeEffect.DROP_SELECTION),
        (state.editing, EscapeEffect.LEAVE_EDIT),
        (state.reading, EscapeEffect.KEEP_UNSENT),
        (state.queued, EscapeEffect.WITHDRAW_QUEUED),
        (state.generating, EscapeEffect.STOP),
        (state.prompting, EscapeEffect.NAVIGATE),
    ):
        if applies:
            return effect
    return EscapeEffect.NOTHING
