"""Entries of the command palette: actions with their keys, conversations, themes and scheduling."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from app.text.safe_text import safe_line
from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from app.tui.keys import ALL_KEYS, shown

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


class Entry(NamedTuple):
    """One line of the palette."""

    text: str
    help: str
    run: Callable[[], object]


class PravahaCommands(Provider):
    """Searches the entries."""

    def _entries(self) -> Iterator[Entry]:
        app = cast("PravahaApp", self.app)
        disabled = app.disabled_reasons()
        for key in ALL_KEYS:
            if not key.palette:
                continue
            why = disabled.get(key.id)
            keys = shown(key, app.keymap)
            note = f"{keys}: {why}" if why else keys
            run = (
                partial(app.notify_safely, why, "warning")
                if why
                else partial(app.run_action, key.action)
            )
            yield Entry(key.help, note, run)
        yield Entry("Switch model", "/model: choose an installed model", app.models.choose)
        yield Entry("Sampling parameters", "/sampling: of this conversation", app.sampling.edit)
        for tree in app.session.trees():
            yield Entry(
                f"Open: {safe_line(tree.title)}", "conversation", partial(app.open_chat, tree.id)
            )
        for name, theme in app.theme_files.items():
            if theme.theme is not None:
                yield Entry(f"Theme: {name}", theme.title, partial(app.use_theme, name))
        for policy, title in POLICY_TITLES.items():
            run = partial(app.scheduler.change, policy=policy)
            yield Entry(f"Scheduling: {policy}", f"{title}, from the next step on", run)
        for former, title in BATCH_FORMER_TITLES.items():
            run = partial(app.scheduler.change, batch_former=former)
            yield Entry(f"Steps: {former}", title, run)

    async def discover(self) -> Hits:
        """All entries, for an empty query."""
        for entry in self._entries():
            yield DiscoveryHit(
                Content(entry.text),
                entry.run,
                text=entry.text,
                # Annotated as str, but a str is parsed as markup and `Content` is accepted.
                help=cast("str", Content(entry.help)),
            )

    async def search(self, query: str) -> Hits:
        """The entries that match the query."""
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.text)
            if score > 0:
                # `highlight` parses its text as markup, which a title may contain.
                marked = Content(entry.text) if "[" in entry.text else matcher.highlight(entry.text)
                yield Hit(
                    score, marked, entry.run, text=entry.text, help=cast("str", Content(entry.help))
                )
