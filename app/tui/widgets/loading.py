"""The view of an empty conversation: the name, the progress of loading, and the first keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Center, Middle

from app.text.safe_text import safe_line
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.view.bars import build_load_line
from app.tui.view.model_lines import build_parameters
from app.tui.view.spans import Line, Span
from app.tui.view.wrapping import wrap_cells
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.lines import Lines
from app.tui.widgets.needs_drawing import DrawnOnTicks
from engine.api.snapshot import EngineSnapshot, EngineState


@dataclass(frozen=True, slots=True)
class FirstKeys:
    """The keys that the hint of the very first start names."""

    send: str
    navigate: str
    fork: str
    expand: str
    help: str

    @classmethod
    def of(cls, keymap: Mapping[str, str]) -> "FirstKeys":
        """The keys after remapping."""
        names = ("send", "navigate", "fork", "expand", "help")
        return cls(*(hint(name, "", keymap)[0] for name in names))


def build_first_hint(keys: FirstKeys, cells: int) -> list[Line]:
    """What matters most, for someone who has not used the screen before; wrapped to the width."""
    text = (
        f"{keys.send} sends; {keys.navigate}, then {keys.fork} forks, {keys.expand} tries several; "
        f"{keys.help} shows every key"
    )
    return [(Span(row, "$accent"),) for row in wrap_cells(text, cells)]


def build_welcome(
    snapshot: EngineSnapshot, glyphs: Glyphs, cells: int, first: FirstKeys | None = None
) -> list[Line]:
    """The name, then the progress or failure of loading, or the model and the first keys.

    Args:
        snapshot: the engine.
        glyphs: the terminal's glyphs.
        cells: width.
        first: the keys of the hint of the very first start; None on all later ones.
    """
    lines: list[Line] = [(Span("P r a v ā h a", "bold $primary"),), ()]
    if first is not None:
        lines += [*build_first_hint(first, cells), ()]
    if snapshot.state in {EngineState.LOADING, EngineState.FAILED, EngineState.UNLOADED}:
        return lines + build_load_line(snapshot, glyphs, cells)
    if snapshot.model is not None:
        model = snapshot.model
        words = f"{safe_line(model.name)} {glyphs.separator} {build_parameters(model)}"
        words += f" {glyphs.separator} {model.context_length} tokens of context"
        lines += [(Span(words, "$muted"),), ()]
    for key, meaning in _FIRST_KEYS:
        lines.append((Span(key.rjust(7), "$accent"), Span(f"  {meaning.ljust(19)}", "$muted")))
    return lines


_FIRST_KEYS = (
    ("enter", "send what you typed"),
    ("ctrl+j", "a new line"),
    ("ctrl+c", "stop an answer"),
    ("/", "list the commands"),
    ("f1", "show every key"),
)


class LoadingView(DrawnOnTicks, Middle):
    """Shows `EngineSnapshot.loading_progress` until the engine is ready, then a welcome text."""

    def __init__(
        self,
        avatar: Avatar,
        glyphs: Glyphs,
        *,
        first: FirstKeys | None = None,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._first = first
        self._avatar = avatar
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Figure above words, both centred."""
        with Center():
            yield self._avatar
        with Center():
            yield Lines(id="welcome-lines")

    def show(self, frame: Frame) -> bool:
        """Draw what changed."""
        cells = self.content_region.width - 4
        lines = build_welcome(frame.snapshot, self._glyphs, cells, self._first)
        self.query_one("#welcome-lines", Lines).show_lines(lines)
        return False
