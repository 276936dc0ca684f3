"""Widgets that grow with a streamed answer are laid out once, not twice, when a row is added."""

from textual.geometry import Size


class LaidOutOnce:
    """Mixin of widgets whose contents follow from the size they were given.

    A widget whose virtual size changed asks for another layout of the whole screen: in Textual 8.2.8
    that is how a scroll bar makes room for itself. These have none, or ask for it when theirs comes
    and goes.
    """

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # Called by Textual's screen after each layout, with what it came to.
        updated: bool = super()._size_updated(  # type: ignore[misc]  # mixed into widgets only
            size, virtual_size, container_size, layout=False
        )
        return updated
