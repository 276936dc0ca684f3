"""Entries of the command palette: keys and commands, and what can be chosen by its name.

These are branches, conversations, agents, themes, policies of the scheduler and settings.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher

from app.settings.shown_setting import ShownSetting
from app.slash.commands import Command
from app.slash.parse import Invocation, available
from app.text.safe_text import safe_line
from app.text.scheduling_titles import BATCH_FORMER_TITLES, POLICY_TITLES
from app.tui.action_groups import ActionGroups
from app.tui.agent_names import AgentNames
from app.tui.availability import Availability
from app.tui.chat_screen import ChatScreen
from app.tui.keys import ALL_KEYS, APP_KEYS, Group, Key, shown
from app.tui.slash_actions import SlashActions
from app.tui.theme_choice import ThemeChoice
from app.tui.widgets.prompt import Prompt

_BEGINS = 1000.0
"""Above any score of Textual's, which grows with the number of matched letters."""
_MENTIONS = 1.0
"""Of a setting whose sentence has the words."""


MAX_CONVERSATIONS = 500
"""Newest conversations that are entries; `ctrl+f` finds all."""


class Entry(NamedTuple):
    """One line of the palette.

    Attributes:
        at_once: shown before anything is typed.
        runs: choosing it does something; the others come last.
        setting: the setting that it opens, which is found by its words instead of the text.
    """

    text: str
    help: str
    run: Callable[[], object]
    at_once: bool = True
    runs: bool = True
    setting: ShownSetting | None = None


def title_of(key: Key) -> str:
    """The label and what the action does. The sentence alone may lack the word that is searched for."""
    if key.help.lower().startswith(key.label):
        return key.help
    return f"{key.label.capitalize()}: {key.help}"


def score(matcher: Matcher, text: str) -> float:
    """How well an entry matches, 0 for not at all; one that begins with the query precedes all others."""
    found = matcher.match(text)
    return found + _BEGINS if text.lower().startswith(matcher.query.lower()) else found


def score_setting(query: str, setting: ShownSetting) -> float:
    """How well a setting matches: its name or the words for it before all but the beginnings of entries."""
    if setting.is_named(query):
        return _BEGINS
    return _MENTIONS if setting.matches(query) else 0.0


def where_it_works(key: Key) -> str:
    """Why an action cannot be run from the palette; empty if it can: a widget's own keys need its focus."""
    of_app = key.action.startswith("app.") and key.group in (Group.NAVIGATE, Group.PROMPT)
    return "" if key in APP_KEYS or of_app else f"only with the focus on: {key.group}"


def commands_without_keys() -> list[Command]:
    """The slash commands that no entry of a key, and none of the palette's own, stands for."""
    taken = {"model", "sampling"}
    for key in ALL_KEYS:
        if key.palette:
            taken |= {key.id, key.label}
    return [command for command in available("screen") if command.name not in taken]


class PaletteEntries:
    """Lists the entries as they are now; the app composes it.

    Args:
        run_action: runs an action of the key table.
    """

    def __init__(
        self,
        screen: ChatScreen,
        actions: ActionGroups,
        slash: SlashActions,
        *,
        availability: Availability,
        agent_names: AgentNames,
        keymap: Mapping[str, str],
        run_action: Callable[[str], Awaitable[object]],
    ) -> None:
        self._screen = screen
        self._actions = actions
        self._slash = slash
        self._availability = availability
        self._agent_names = agent_names
        self._keymap = keymap
        self._run_action = run_action

    def begin(self) -> None:
        """Have the agents read, for what is typed next."""
        self._agent_names.begin(self._screen)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._keys()
        yield from self._commands()
        yield from self._choices()
        yield from self._settings()

    def _keys(self) -> Iterator[Entry]:
        disabled = self._availability.reasons()
        for key in ALL_KEYS:
            elsewhere = where_it_works(key)
            why = elsewhere or disabled.get(key.id)
            keys = shown(key, self._keymap)
            note = f"{keys}: {why}" if why else keys
            run = (
                partial(self._screen.notify_safely, why, "warning")
                if why
                else partial(self._run_action, key.action)
            )
            yield Entry(title_of(key), note, run, at_once=key.palette, runs=not elsewhere)

    def _commands(self) -> Iterator[Entry]:
        models, sampling = self._actions.models, self._actions.sampling
        yield Entry("Switch model", "/model: choose an installed model", models.choose)
        yield Entry("Sampling parameters", "/sampling: of this conversation", sampling.edit)
        for command in commands_without_keys():
            text = f"{command.name.capitalize()}: {command.help}"
            typed = f"/{command.name} {command.argument}".rstrip()
            yield Entry(text, typed, partial(self._run_command, command))

    def _choices(self) -> Iterator[Entry]:
        actions = self._actions
        for branch, node_id in self._screen.session.tree.branches().items():
            go = partial(self._run_action, f"perform('go','to','{node_id}')")
            yield Entry(f"Branch: {safe_line(branch)}", "of this conversation", go)
        for name, theme in actions.themes.files.items():
            if theme.theme is not None:
                yield Entry(f"Theme: {name}", theme.title, ThemeChoice(name, actions.themes.use))
        for one in self._agent_names.known:
            text = f"{one['kind'].capitalize()}: {safe_line(one['name'])}"
            write = partial(self._write_command, f"/agents {one['name']} ")
            yield Entry(text, safe_line(one["description"]), write, at_once=False)
        for name in actions.sources.names:
            verb = "Detach" if name in actions.sources.attached else "Attach"
            toggle = partial(self._run_action, f"perform('sources','toggle',{name!r})")
            yield Entry(f"{verb}: {name}", "collection of documents", toggle)
        for tree in actions.listing.found[:MAX_CONVERSATIONS]:
            open_tree = partial(actions.conversations.open, tree.id)
            yield Entry(f"Open: {safe_line(tree.title)}", "conversation", open_tree)
        for policy, title in POLICY_TITLES.items():
            run = partial(actions.scheduler.change, policy=policy)
            yield Entry(f"Scheduling: {policy}", f"{title}, from the next step on", run)
        for former, title in BATCH_FORMER_TITLES.items():
            run = partial(actions.scheduler.change, batch_former=former)
            yield Entry(f"Steps: {former}", title, run)

    def _settings(self) -> Iterator[Entry]:
        actions = self._actions.settings
        for one in actions.known:
            value = f"{safe_line(one.value)}; " if one.value else ""
            yield Entry(
                f"Setting: {one.name}",
                f"{value}{one.help}",
                partial(actions.open, one.name),
                at_once=False,
                setting=one,
            )

    async def _run_command(self, command: Command) -> None:
        """Run a slash command; one that needs an argument is written into the prompt instead."""
        if not command.needs_argument:
            await self._slash.run(Invocation(command, ""))
            return
        self._write_command(f"/{command.name} ")

    def _write_command(self, command: str) -> None:
        """Put a command before the text of the prompt."""
        prompt = self._screen.main.query_one(Prompt)
        prompt.insert_unsent(f"{command}{prompt.text}".rstrip() + " ", replace=True)
        prompt.focus()


class HasPalette(Protocol):
    """The app that opens the palette."""

    palette: PaletteEntries


class PravahaCommands(Provider):
    """Searches the entries."""

    @property
    def _entries(self) -> PaletteEntries:
        return cast("HasPalette", self.app).palette

    async def startup(self) -> None:
        """Have read what is listed later."""
        self._entries.begin()

    async def discover(self) -> Hits:
        """The entries for an empty query: those that help without a search."""
        for entry in self._entries:
            if not entry.at_once:
                continue
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
        for entry in self._entries:
            found = (
                score(matcher, entry.text)
                if entry.setting is None
                else score_setting(query, entry.setting)
            )
            if found > 0:
                found = found if entry.runs else found / _BEGINS
                # `highlight` parses its text as markup, which a title may contain.
                marked = Content(entry.text) if "[" in entry.text else matcher.highlight(entry.text)
                yield Hit(
                    found, marked, entry.run, text=entry.text, help=cast("str", Content(entry.help))
                )
