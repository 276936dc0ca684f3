"""What the command palette offers: every action with its key, slash commands, chats and themes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from app.tui.keys import ALL_KEYS, shown
from app.tui.safe_text import safe_line

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class Entry(NamedTuple):
    """One line of the palette."""

    text: str
    help: str
    run: Callable[[], object]


class PravahaCommands(Provider):
    """Searches actions, conversations and themes."""

    def _entries(self) -> Iterator[Entry]:
        app = cast("PravahaApp", self.app)
        disabled = app.disabled_reasons()
        for key in ALL_KEYS:
            if not key.palette:
                continue
            why = disabled.get(key.id)
            note = f"{shown(key)}: {why}" if why else shown(key)
            run = partial(app.notify, why) if why else partial(app.run_action, key.action)
            yield Entry(key.help, note, run)
        for tree in app.session.trees():
            yield Entry(
                f"Open: {safe_line(tree.title)}", "conversation", partial(app.open_chat, tree.id)
            )
        for name, theme in app.theme_files.items():
            if theme.theme is not None:
                yield Entry(f"Theme: {name}", theme.title, partial(setattr, app, "theme", name))

    async def discover(self) -> Hits:
        """Everything, before anything is typed."""
        for entry in self._entries():
            yield DiscoveryHit(entry.text, entry.run, help=entry.help)

    async def search(self, query: str) -> Hits:
        """What matches the query."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.text)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.text), entry.run, help=entry.help)
