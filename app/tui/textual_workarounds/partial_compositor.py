"""A compositor that renders only the rows that changed.

Guard: the cost of a partial update must be proportional to its rows. Textual 8.2.8 renders all rows of
every visible widget whenever one row changed, which took 80 % of the time to draw a streamed word.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from app.tui.textual_workarounds.closed_screen import NotifiesOfSelectionAtOnce
from app.tui.textual_workarounds.paced_output import PacedOutput
from app.tui.textual_workarounds.removed_under_pointer import RemovedUnderPointer
from app.tui.textual_workarounds.styled_once import StyledOnce


def bands_of(regions: Iterable[Region]) -> list[Region]:
    """Disjoint ranges of rows that cover all of `regions`, top to bottom."""
    bands: list[Region] = []
    for region in sorted(regions, key=lambda each: each.y):
        if bands and region.y < bands[-1].bottom:
            bands[-1] = bands[-1].union(region)
        else:
            bands.append(region)
    return bands


class PartialCompositor(Compositor):
    """Renders partial updates band by band, front to back; everything else as Textual does."""

    _bands: list[Region] | None = None

    def render_partial_update(self) -> ChopsUpdate | None:
        """As Textual's, restricted to the topmost widgets in the dirty regions."""
        self._bands = bands_of(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._bands = None

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if self._bands is None:
            yield from super()._get_renders(crop)
            return
        covers: list[list[Region]] = [[] for _ in self._bands]
        for widget, (region, clip) in self.visible_widgets.items():
            visible = region.intersection(clip)
            for band, in_front in zip(self._bands, covers, strict=True):
                shown = visible.intersection(band)
                # A widget draws every cell of its region, so that widgets behind it are invisible.
                if not shown or any(each.contains_region(shown) for each in in_front):
                    continue
                in_front.append(shown)
                # Render whole rows: Textual divides them at the edges of widgets.
                rows = Region(visible.x, shown.y, visible.width, shown.height)
                yield region, rows, widget.render_lines(rows.translate(-region.offset))


class MainScreen(StyledOnce, RemovedUnderPointer, NotifiesOfSelectionAtOnce, Screen[None]):
    """The app's main screen, with a `PartialCompositor`, drawn when the terminal has taken the last frame.

    Args:
        drawing_context: returns the context of layouts and repaints.
        classes: CSS classes.
    """

    app: PacedOutput

    def __init__(
        self, drawing_context: Callable[[], AbstractContextManager[None]], *, classes: str
    ) -> None:
        super().__init__(id="_default", classes=classes)
        self._compositor = PartialCompositor()
        self._drawing_context = drawing_context
        self.add_breakpoint_classes()

    def draw_deferred(self) -> None:
        """Draw what changed while the terminal was busy."""
        self._on_timer_update()
        self._compositor_refresh()

    def _on_timer_update(self) -> None:
        if self.is_current and self.app.pace.congested:
            self._update_timer.pause()
            self.app.defer_drawing(self)
            if self._callbacks:
                self.call_next(self._invoke_and_clear_callbacks)
            return
        with self._drawing_context():
            super()._on_timer_update()

    def _compositor_refresh(self) -> None:
        # The dirty regions stay in the compositor.
        if self.is_current and self.app.pace.congested:
            self.app.defer_drawing(self)
            return
        super()._compositor_refresh()
