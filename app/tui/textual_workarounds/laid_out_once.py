"""Avoids the second layout of widgets that grow with a streamed answer."""

from textual.geometry import Size


class LaidOutOnce:
    """Mixin of widgets whose layout does not depend on their virtual size.

    In Textual 8.2.8 a widget whose virtual size changed requests another layout of the whole screen, to
    make room for a scroll bar. These widgets have none, or request a layout when theirs appears or
    disappears.
    """

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # Textual's screen calls this after each layout, with the resulting sizes.
        updated: bool = super()._size_updated(  # type: ignore[misc]  # mixed into widgets only
            size, virtual_size, container_size, layout=False
        )
        return updated
