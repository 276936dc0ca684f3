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
from app.tui.avatar.half_blocks import render_frame, small_lines
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.mood import Mood, MoodState, build_mood_words, decode_fps
from app.tui.view.spans import Line
from app.tui.widgets.needs_drawing import DrawnOnTicks
from app.tui.widgets.theme_colors import parsed


class Avatar(DrawnOnTicks, Widget):
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

    def show(self, frame: Frame) -> bool:
        """Show the figure's frame for this time; True if a later one of this mood follows."""
        state, frames = frame.mood, self._figure.state(frame.mood.mood)
        index, moving = self._index(frame)
        before, self._shown = self._shown, (state.mood, index)
        # Most steps of an order repeat a frame and need no redrawing.
        if before[0] is not state.mood or frames.frames[index] != frames.frames[before[1]]:
            self.refresh()
        words = build_mood_words(state.mood, frame.snapshot, retry_key=frame.retry_key)
        if words != self._words:
            self._words = words
            self.tooltip = words
        return moving

    def _index(self, frame: Frame) -> tuple[int, bool]:
        """The frame for this time, and whether a later one of this mood follows."""
        state, snapshot = frame.mood, frame.snapshot
        frames = self._figure.state(state.mood)
        elapsed = frame.now - state.since if self._moves else 0.0
        fps = None
        if state.mood is Mood.DECODE:
            fps = decode_fps(snapshot.rates.decode_tokens_per_second)
        index = frames.index(elapsed, fps=fps, progress=snapshot.loading_progress)
        return index, self._moves and not frames.still(elapsed)

    @property
    def has_small(self) -> bool:
        """Whether the figure can be drawn in two text rows."""
        return self.display and self._pixels and bool(self._figure.state(Mood.IDLE).small)

    def small(self, frame: Frame) -> tuple[list[Line], bool]:
        """The figure in two text rows, and whether it will look different later."""
        index, moving = self._index(frame)
        state = self._figure.state(frame.mood.mood)
        rows = state.small or self._figure.state(Mood.IDLE).small
        return small_lines(rows[index % len(rows)], self._figure.palette), moving

    def face(self, state: MoodState, now: float) -> str:
        """The mood as a few characters, for screens without room for the figure; empty if there is none."""
        frames = self._figure.state(state.mood)
        if not frames.faces or not self.display:
            return ""
        elapsed = now - state.since if self._moves else 0.0
        return frames.faces[frames.index(elapsed) % len(frames.faces)]

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
        # The stylesheet's variables change only after the theme's name, which the strips are cached by.
        variables = self.app.current_theme.variables
        return {letter: parsed(variables[role]) for letter, role in self._figure.palette.items()}
