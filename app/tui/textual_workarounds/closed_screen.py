"""Work of a screen that was closed before it was done.

Textual 8.2.8 notifies of a changed selection in a coroutine, which a closed screen never awaits. A search
that the command palette begins when it is closed raises an exception, because its list was removed.
"""

from typing import Any

from textual import work
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.selection import Selection
from textual.widget import Widget


class NotifiesOfSelectionAtOnce:
    """Mixin of screens whose widgets learn of a changed selection without a coroutine."""

    def _watch_selections(
        self, old_selections: dict[Widget, Selection], selections: dict[Widget, Selection]
    ) -> Any:  # Textual's own is a coroutine
        for widget in old_selections.keys() | selections.keys():
            widget.selection_updated(selections.get(widget))


class SearchesWhileOpen(CommandPalette):
    """The command palette, whose search ends when it is closed."""

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        gather: Any = CommandPalette._gather_commands
        try:
            await gather.__wrapped__(self, search_value)
        except NoMatches:
            if self.query(CommandList):
                raise
