"""An answer as the text of its tokens, with a token cursor and a heat map, in place of its Markdown.

Guard: `render_line` builds one row from the layout, which is computed once for each width; a move of the
cursor redraws two rows. An answer of 10,000 tokens is as quick as a short one.
"""

from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from app.tui.glyphs import Glyphs
from app.tui.textual_workarounds.cached_strips import CachedStrips
from app.tui.view.content import to_content
from app.tui.view.spans import Span
from app.tui.view.tints import PLAIN_ROLES, Tint, tint_role
from app.tui.view.token_answer import TokenAnswer
from app.tui.view.token_bars import build_token_bar, build_token_header
from app.tui.view.token_lines import TokenLayout, layout_units
from app.tui.widgets.needs_drawing import DrawnOnTicks
from app.tui.widgets.theme_colors import legible_text, rich_color

_HEADER_ROWS = 1
_TOOLTIP_CELLS = 80


@dataclass(frozen=True, slots=True)
class ShownTokens:
    """What a `TokenView` shows.

    Attributes:
        answer: the tokens.
        tint: what the tint of each token shows; None without a tint.
        cursor: the unit under the token cursor, or None.
    """

    answer: TokenAnswer
    tint: Tint | None
    cursor: int | None


class TokenView(CachedStrips, DrawnOnTicks, Widget):
    """The figures of the answer, and its tokens."""

    class Pointed(Message):
        """A token was clicked."""

        def __init__(self, node_id: str, unit: int) -> None:
            super().__init__()
            self.node_id = node_id
            self.unit = unit

    def __init__(self, shown: ShownTokens, glyphs: Glyphs) -> None:
        super().__init__(classes="message-tokens")
        self._shown = shown
        self._glyphs = glyphs
        self._laid_out: tuple[int, TokenLayout] | None = None
        self._hovered: int | None = None
        self._styles_by_role: dict[tuple[str | None, bool, Style], Style] = {}

    @property
    def shown(self) -> ShownTokens:
        """What is shown."""
        return self._shown

    def show(self, shown: ShownTokens) -> None:
        """Show something else of the same answer; redraws only what changed."""
        before, self._shown = self._shown, shown
        if before.answer is not shown.answer:
            self._laid_out = None
            self.refresh(layout=True)
        elif before.tint is not shown.tint:
            self.refresh()
        elif before.cursor != shown.cursor:
            for unit in {before.cursor, shown.cursor} - {None}:
                self._refresh_unit(unit or 0)

    def row_of(self, unit: int) -> int:
        """The row on which a unit begins, counted from the widget's first one."""
        return self._layout(self.content_size.width).first_row[unit] + _HEADER_ROWS

    def column_of(self, unit: int) -> int:
        """The cell at which a unit begins."""
        return self._layout(self.content_size.width).column(unit)

    def _refresh_unit(self, unit: int) -> None:
        layout = self._layout(self.content_size.width)
        first = layout.first_row[unit]
        rows = 1
        while first + rows < len(layout.rows) and any(
            piece.unit == unit for piece in layout.rows[first + rows]
        ):
            rows += 1
        self.refresh(Region(0, first + _HEADER_ROWS, self.content_size.width, rows))

    def _layout(self, width: int) -> TokenLayout:
        if self._laid_out is None or self._laid_out[0] != width:
            self._laid_out = width, layout_units(self._shown.answer.units, width)
        return self._laid_out[1]

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """All there is."""
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Rows of the header and of the text."""
        return _HEADER_ROWS + len(self._layout(width).rows)

    def notify_style_update(self) -> None:
        """The theme changed: discard the cached styles."""
        super().notify_style_update()
        self._styles_by_role.clear()

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.content_size.width
        base = self.rich_style
        if y < _HEADER_ROWS:
            return self._header(width, base)
        layout = self._layout(width)
        if y - _HEADER_ROWS >= len(layout.rows):
            return Strip.blank(width, base)
        segments = [
            Segment(piece.text, self._style(piece.unit, base))
            for piece in layout.rows[y - _HEADER_ROWS]
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _header(self, width: int, base: Style) -> Strip:
        line = build_token_header(self._shown.answer, self._shown.tint, self._glyphs, width)
        segments = [Segment(span.text, base + self._header_style(span)) for span in line]
        return Strip(segments).adjust_cell_length(width, base)

    def _header_style(self, span: Span) -> Style:
        _, on, role = span.style.rpartition("on $")
        if on:
            return self._role_style(role)
        return Style(color=rich_color(self.app.theme_variables["muted"]))

    def _style(self, unit: int, base: Style) -> Style:
        role = tint_role(self._shown.answer, unit, self._shown.tint)
        key = (role, unit == self._shown.cursor, base)
        if key not in self._styles_by_role:
            self._styles_by_role[key] = base + self._make_style(role, under_cursor=key[1])
        return self._styles_by_role[key]

    def _make_style(self, role: str | None, *, under_cursor: bool) -> Style:
        if under_cursor and not self.app.no_color:
            return self._role_style("kv-cursor") + Style(bold=True)
        style = Style() if role is None else self._role_style(role)
        # No tint is reversed and underlined at the same time.
        return style + Style(reverse=True, underline=True) if under_cursor else style

    def _role_style(self, role: str) -> Style:
        """Text on a colour of the theme, in the one that is more legible of the theme's two."""
        if self.app.no_color:
            return Style.parse(PLAIN_ROLES[role])
        variables = self.app.theme_variables
        ground = variables[role]
        text = legible_text(ground, variables)
        return Style(color=rich_color(text), bgcolor=rich_color(ground))

    def on_click(self, event: events.Click) -> None:
        """Report the token."""
        unit = self._unit_under(event)
        if unit is not None:
            self.post_message(self.Pointed(self._shown.answer.node_id, unit))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Explain the token under the pointer, in the words of the row of the token cursor."""
        unit = self._unit_under(event)
        if unit == self._hovered:
            return
        self._hovered = unit
        if unit is None:
            self.tooltip = None
            return
        answer = self._shown.answer
        line = build_token_bar(answer, unit, None, (), self._glyphs, _TOOLTIP_CELLS)
        self.tooltip = to_content([line])

    def _unit_under(self, event: events.MouseEvent) -> int | None:
        """The unit under the pointer, or None."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < _HEADER_ROWS:
            return None
        return self._layout(self.content_size.width).unit_at(offset.x, offset.y - _HEADER_ROWS)
