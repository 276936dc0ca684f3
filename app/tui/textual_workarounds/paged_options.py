"""Page up and down in an option list without room: Textual 8.2.8 raises KeyError, as it knows no rows."""

from textual.widgets import OptionList


def has_rows(options: OptionList) -> bool:
    """Whether the list can be paged."""
    return bool(options.scrollable_content_region)


class PagedOptions(OptionList):
    """An option list in which paging without room does nothing."""

    def _move_page(self, direction: int) -> None:
        if has_rows(self):
            super()._move_page(direction)  # type: ignore[arg-type]  # -1 or 1
