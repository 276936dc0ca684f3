"""Entries of the command palette: keys, slash commands without a key, conversations, themes, scheduling."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher

from app.slash.commands import Command
from app.slash.parse import Invocation, available
from app.text.safe_text import safe_line
from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from app.tui.keys import ALL_KEYS, Key, shown
from app.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from app.tui.app import PravahaApp


_BEGINS = 1000.0
"""Above any score of Textual's, which grows with the number of matched letters."""


class Entry(NamedTuple):
    """One line of the palette."""

    text: str
    help: str
    run: Callable[[], object]


def title_of(key: Key) -> str:
    """The label and what the action does. The sentence alone may lack the word that is searched for."""
    if key.help.lower().startswith(key.label):
        return key.help
    return f"{key.label.capitalize()}: {key.help}"


def score(matcher: Matcher, text: str) -> float:
    """How well an entry matches, 0 for not at all; one that begins with the query precedes all others."""
    found = matcher.match(text)
    return found + _BEGINS if text.lower().startswith(matcher.query.lower()) else found


def commands_without_keys() -> list[Command]:
    """The slash commands that no entry of a key, and none of the palette's own, stands for."""
    taken = {"model", "sampling"}
    for key in ALL_KEYS:
        if key.palette:
            taken |= {key.id, key.label}
    return [command for command in available("screen") if command.name not in taken]


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
            yield Entry(title_of(key), note, run)
        yield Entry("Switch model", "/model: choose an installed model", app.models.choose)
        yield Entry("Sampling parameters", "/sampling: of this conversation", app.sampling.edit)
        for command in commands_without_keys():
            text = f"{command.name.capitalize()}: {command.help}"
            typed = f"/{command.name} {command.argument}".rstrip()
            yield Entry(text, typed, partial(_run_command, app, command))
        for tree in app.listing.found:
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
            found = score(matcher, entry.text)
            if found > 0:
                # `highlight` parses its text as markup, which a title may contain.
                marked = Content(entry.text) if "[" in entry.text else matcher.highlight(entry.text)
                yield Hit(
                    found, marked, entry.run, text=entry.text, help=cast("str", Content(entry.help))
                )


async def _run_command(app: "PravahaApp", command: Command) -> None:
    """Run a slash command; one that needs an argument is written into the prompt instead."""
    if not command.needs_argument:
        await app.slash.run(Invocation(command, ""))
        return
    prompt = app.query_one(Prompt)
    prompt.insert_unsent(f"/{command.name} {prompt.text}".rstrip() + " ", replace=True)
    prompt.focus()
