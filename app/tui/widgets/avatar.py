"""The pixel figure, whose frame is a function of the mood and of the time since the mood began.

It has no timer: the frame clock calls `show`. Strips are cached by theme, mood and frame.
"""

from collections.abc import Mapping

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from app.tui.avatar.figure import Figure
from app.tui.avatar.half_blocks import render_frame
from app.tui.glyphs import Glyphs
from app.tui.view.mood import Mood, MoodState, build_mood_words, decode_fps
from app.tui.widgets.theme_colors import parsed
from engine.api.snapshot import EngineSnapshot


class Avatar(Widget):
    """A figure in half-blocks, or its ASCII face on terminals without colour or Unicode."""

    def __init__(
        self,
        figure: Figure,
        glyphs: Glyphs,
        *,
        animate: bool,
        colored: bool,
        id: str | None = None,  # noqa: A002
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._figure = figure
        self._pixels = glyphs.half_blocks and colored
        self._moves = animate
        self._shown: tuple[Mood, int] = (Mood.IDLE, 0)
        self._strips: dict[tuple[str, Mood, int], list[Strip]] = {}
        self._rendered: dict[tuple[str, Style, Region, Mood, int], list[Strip]] = {}
        self._words = ""

    @property
    def shown(self) -> tuple[Mood, int]:
        """The mood and the frame on screen."""
        return self._shown

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """The figure's width."""
        return self._figure.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Half the figure's pixel rows."""
        return self._figure.height // 2

    def show(self, state: MoodState, snapshot: EngineSnapshot, now: float) -> bool:
        """Show the frame for `now`; True if a later frame of this mood follows."""
        frames = self._figure.state(state.mood)
        elapsed = now - state.since if self._moves else 0.0
        speed = snapshot.rates.decode_tokens_per_second
        fps = decode_fps(speed) if state.mood is Mood.DECODE else None
        index = frames.index(elapsed, fps=fps, progress=snapshot.loading_progress)
        before, self._shown = self._shown, (state.mood, index)
        # Most steps of an order repeat a frame and need no redrawing.
        if before[0] is not state.mood or frames.frames[index] != frames.frames[before[1]]:
            self.refresh()
        words = build_mood_words(state.mood, snapshot)
        if words != self._words:
            self._words = words
            self.tooltip = words
        return self._moves and not frames.still(elapsed)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`, cached by theme, style, crop and frame."""
        key = (self.app.theme, self.rich_style, crop, *self._shown)
        strips = self._rendered.get(key)
        if strips is None:
            strips = self._rendered[key] = super().render_lines(crop)
        return strips

    def render_line(self, y: int) -> Strip:
        """One text row of the frame."""
        mood, index = self._shown
        key = (self.app.theme, mood, index)
        strips = self._strips.get(key)
        if strips is None:
            strips = self._strips[key] = self._draw(mood, index)
        strip = strips[y] if y < len(strips) else Strip.blank(self._figure.width)
        return strip.apply_style(self.rich_style).crop_extend(0, self.size.width, self.rich_style)

    def _draw(self, mood: Mood, index: int) -> list[Strip]:
        state = self._figure.state(mood)
        if not self._pixels:
            face = state.faces[index % len(state.faces)] if state.faces else ""
            middle = self._figure.height // 4
            blank = Strip.blank(self._figure.width)
            rows = [blank] * (self._figure.height // 2)
            rows[middle] = Strip([Segment(face.center(self._figure.width), Style(bold=True))])
            return rows
        return [Strip(row) for row in render_frame(state.frames[index], self._colors())]

    def _colors(self) -> Mapping[str, Color]:
        variables = self.app.theme_variables
        return {letter: parsed(variables[role]) for letter, role in self._figure.palette.items()}
