"""The Esc ladder: one Esc undoes exactly one thing, the first that applies, and never quits."""

from dataclasses import dataclass
from enum import Enum, auto


class Rung(Enum):
    """What one Esc undoes, from the first to the last."""

    CLOSE_POPUP = auto()
    RESTORE_PANE = auto()
    DROP_SELECTION = auto()
    WITHDRAW_QUEUED = auto()
    STOP = auto()
    NAVIGATE = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class EscapeState:
    """What is there to be undone."""

    popup: bool = False
    maximised: bool = False
    selection: bool = False
    queued: bool = False
    generating: bool = False
    prompting: bool = False


def escape_rung(state: EscapeState) -> Rung:
    """The one thing that this Esc undoes."""
    for applies, rung in (
        (state.popup, Rung.CLOSE_POPUP),
        (state.maximised, Rung.RESTORE_PANE),
        (state.selection, Rung.DROP_SELECTION),
        (state.queued, Rung.WITHDRAW_QUEUED),
        (state.generating, Rung.STOP),
        (state.prompting, Rung.NAVIGATE),
    ):
        if applies:
            return rung
    return Rung.NOTHING
