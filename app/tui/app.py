"""`PravahaApp` connects bindings and actions to calls on the session, the client or a widget.

Behaviour lives elsewhere: drawing in `presenter.py`, slash commands in `slash_actions.py`, the effect of
Esc in `view/escape.py`.
"""

import asyncio
import difflib
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.containers import Horizontal, Vertical
from textual.filter import LineFilter
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, TextArea

from app.text.safe_text import safe_line
from app.text.scheduling_titles import POLICY_TITLES
from app.tui import clipboard, slash
from app.tui.ascii_filter import AsciiFilter
from app.tui.avatar.figure import FOLDER, load_figure
from app.tui.frame_clock import FrameClock
from app.tui.glyphs import choose_glyphs
from app.tui.keys import APP_KEYS, bindings, hint, read_keymap, to_textual
from app.tui.palette import PravahaCommands
from app.tui.presenter import Presenter
from app.tui.slash_actions import SlashActions
from app.tui.textual_workarounds.continued import repaint_when_continued
from app.tui.textual_workarounds.partial_compositor import MainScreen
from app.tui.themes import BUILT_IN, DEFAULT, ThemeFile, load_themes
from app.tui.view.escape import EscapeEffect, EscapeState, escape_effect
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import ConversationOptions, Conversations
from app.tui.widgets.help import HelpScreen
from app.tui.widgets.kv_map import KvMap
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.lines import Lines
from app.tui.widgets.loading import LoadingView
from app.tui.widgets.needs_drawing import NeedsDrawing
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.stats import StatsPane
from app.tui.widgets.status_bar import MIN_COLUMNS, MIN_ROWS, StatusBar
from app.tui.widgets.theme_picker import ThemePicker
from app.tui.widgets.transcript import MessageScroll, Transcript
from app.tui.widgets.vitals import Vitals
from engine.api.errors import PravahaError
from engine.clients.engine_client import EngineClient
from engine.conversations.errors import ConversationChanged
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind

Pane = Literal["chat", "kv", "stats"]
Severity = Literal["information", "warning", "error"]

_QUIT_WINDOW_S = 2.0
_FIGURE = FOLDER / "bindu.txt"
_ALWAYS_HINTED = (
    ("help", "keys"),
    ("palette", "commands"),
    ("pane.kv", "kv"),
    ("pane.stats", "stats"),
    ("chat.new", "new"),
    ("quit", "quit"),
)
"""Actions that the status bar shows if there is room, and their labels."""


class PravahaApp(App[None]):
    """The full-screen chat.

    Args:
        theme: name of the initial theme; None takes the default.
        themes_dir: the user's own themes, which override ours.
        keymap: action id → keys, for remapping.
        server: the address of the engine's server; None for an engine in this process.
        on_theme: called with the name of a theme that was chosen, to save it.
        on_first_frame: called after the first frame is drawn; starts loading the model.
    """

    CSS_PATH = "styles/pravaha.tcss"
    TITLE = "Pravāha"
    BINDINGS: ClassVar[list[BindingType]] = bindings(APP_KEYS)
    COMMANDS: ClassVar = {PravahaCommands}
    ESCAPE_TO_MINIMIZE = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual's own name and type
        (0, "-tiny"),
        (80, "-narrow"),
        (100, "-medium"),
        (140, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012

    pane: reactive[Pane] = reactive("chat", init=False)
    maximised: reactive[bool] = reactive(False, init=False)

    def __init__(
        self,
        client: EngineClient,
        session: TreeSession,
        *,
        version: str,
        server: str | None = None,
        theme: str | None = None,
        themes_dir: Path | None = None,
        keymap: dict[str, str] | None = None,
        on_theme: Callable[[str], None] = lambda name: None,
        on_first_frame: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.client = client
        self.session = session
        self.version = version
        self._server = server
        self.theme_files: dict[str, ThemeFile] = load_themes(
            [BUILT_IN, *([themes_dir] if themes_dir else [])]
        )
        self._wanted_theme = theme or DEFAULT
        # The stylesheet refers to our theme variables: register a theme before it is parsed.
        for found in self.theme_files.values():
            if found.theme is not None:
                self.register_theme(found.theme)
        self.theme = DEFAULT
        self.keymap, self._key_problems = read_keymap(keymap or {})
        self._on_theme = on_theme
        self._on_first_frame = on_first_frame
        self._clock = clock
        self._wall_clock = wall_clock
        self._glyphs = choose_glyphs(os.environ)
        self._ascii = AsciiFilter(enabled=self._glyphs.name == "ascii")
        figure = load_figure(_FIGURE)
        animate, colored = self.animation_level != "none", not self.no_color
        self._avatars = tuple(
            Avatar(figure, self._glyphs, animate=animate, colored=colored) for _ in range(2)
        )
        self._slash = SlashActions(self)
        self._presenter: Presenter | None = None
        self.frame_clock = FrameClock(self._tick, on_error=self._tick_failed, clock=clock)
        self._interrupted_at = float("-inf")
        self._focused_before: Widget | None = None

    # -- composition ---------------------------------------------------------------------------

    def get_default_screen(self) -> MainScreen:
        """The main screen."""
        return MainScreen(self._drawing_context)

    def compose(self) -> ComposeResult:
        """Header, three columns, status bar."""
        glyphs = self._glyphs
        yield Lines(id="header")
        with Horizontal(id="body"):
            yield Conversations(glyphs, wall_clock=self._wall_clock, id="chats")
            with Vertical(id="center"):
                yield LoadingView(self._avatars[0], glyphs, id="welcome")
                yield Transcript(glyphs, id="transcript")
                yield StatsPane(glyphs, id="stats")
                yield Lines(id="queued")
                yield Lines(id="completions")
                yield Prompt(id="prompt")
            with Vertical(id="side"):
                yield KvPane(glyphs, colored=not self.no_color, id="kv")
                yield Vitals(self._avatars[1], glyphs, id="vitals")
        yield StatusBar(id="status")

    async def on_mount(self) -> None:
        """Apply theme and keys, show the open conversation, start the clock, load the model."""
        self._choose_theme()
        self._apply_keymap()
        self.screen.add_class(f"-pane-{self.pane}")
        self.query_one("#completions").display = False
        prompt = self.query_one(Prompt)
        prompt.set_history(self.session.prompt_history())
        prompt.focus()
        self._presenter = Presenter(
            self.screen,
            self.client,
            self.session,
            self._glyphs,
            avatars=self._avatars,
            on_settled=self.refresh_list,
            mode=lambda: "PROMPT" if self._typing else "NAVIGATE",
            hints=self._hints,
            server=self._server,
        )
        await self._show_chat()
        self.refresh_list()
        self._restore_on_signals()
        self.client.on_wake(self.frame_clock.wake)
        self.frame_clock.start()
        self.call_after_refresh(self._on_first_frame)

    async def on_unmount(self) -> None:
        """Stop the clock: no tick may follow the removal of the widgets."""
        await self.frame_clock.stop()

    def _choose_theme(self) -> None:
        for name, found in self.theme_files.items():
            if found.problems:
                self.notify_safely(
                    f"Theme {name} is disabled: {'; '.join(found.problems)}.", "warning"
                )
        self._show_theme(self._wanted_theme)

    def _apply_keymap(self) -> None:
        for problem in self._key_problems:
            self.notify_safely(problem, "warning")
        self.set_keymap(to_textual(self.keymap))

    def _restore_on_signals(self) -> None:
        """Quit on signals that end a process, so that the terminal is restored."""
        repaint_when_continued(self)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            try:
                loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))
            except (NotImplementedError, RuntimeError, ValueError):
                return  # not the main thread (tests), or not POSIX

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, and `AsciiFilter` for ASCII terminals."""
        return [*super().get_line_filters(), *([self._ascii] if self._ascii.enabled else [])]

    # -- drawing -------------------------------------------------------------------------------

    async def _tick(self, now: float) -> bool:
        if self._presenter is None or not self.is_running:
            return False
        notice = self.session.take_notice()
        if notice:
            self.notify_safely(notice, "warning")
        with self._drawing_context():
            more = await self._presenter.tick(now)
        self.frame_clock.governor.crowded = self._presenter.crowded
        self.frame_clock.expect_first_token(self._presenter.awaits_first_text)
        return more

    def _drawing_context(self) -> AbstractContextManager[None]:
        """The context of all drawing: under load, the engine yields one core to the screen.

        Otherwise drawing would preempt one of the engine's threads, for which all others would wait.
        """
        crowded = self._presenter is not None and self._presenter.crowded
        return self.client.yield_core() if crowded else nullcontext()

    def _draw_all(self) -> None:
        """Draw everything at the next tick, and wake the clock."""
        if self._presenter is not None:
            self._presenter.draw_all()
        self.frame_clock.wake()

    def _tick_failed(self, error: Exception) -> None:
        self.notify_safely(f"Drawing failed: {error}. The log has the details.", "error")

    async def _show_chat(self) -> None:
        """Load the open conversation's messages."""
        path = self.session.path()
        self.screen.set_class(not path, "-empty")
        await self.query_one(Transcript).load(path)
        self._draw_all()

    def refresh_list(self) -> None:
        """Reload the conversation list."""
        chats = self.query_one(Conversations)
        chats.show(self.session.trees(chats.filter), self.session.tree_id)

    def notify_safely(self, text: str, severity: Severity = "information") -> None:
        """Show a notification, with control sequences removed."""
        self.notify(safe_line(text), severity=severity, markup=False)

    def watch_pane(self, old: Pane, new: Pane) -> None:
        """Set the screen's class, by which the stylesheet shows the pane."""
        self.screen.remove_class(f"-pane-{old}").add_class(f"-pane-{new}")
        self._draw_all()

    def watch_maximised(self, maximised: bool) -> None:
        """Set the screen's class."""
        self.screen.set_class(maximised, "-maximised")
        self._draw_all()

    def on_resize(self, event: events.Resize) -> None:
        """Redraw; show a message if the terminal is too small."""
        main = self.screen_stack[0]
        too_small = event.size.width < MIN_COLUMNS or event.size.height < MIN_ROWS
        if too_small is not main.has_class("-hopeless"):
            # What is hidden loses the focus: keys would have other meanings afterwards.
            if too_small:
                self._focused_before = main.focused
            elif self._focused_before is not None:
                self.call_after_refresh(self._focused_before.focus)
        main.set_class(too_small, "-hopeless")
        self._draw_all()

    @on(NeedsDrawing)
    def _wake_clock(self) -> None:
        self._draw_all()

    def on_descendant_focus(self) -> None:
        """Redraw: the mode in the status bar depends on the focus."""
        self._draw_all()

    @property
    def _typing(self) -> bool:
        """Whether letters go into a text field of the main screen, also while a dialog is over it."""
        return isinstance(self.screen_stack[0].focused, TextArea | Input)

    def _hints(self) -> Sequence[tuple[str, str, str]]:
        if self.session.generating:
            first = [("copy_or_stop", "stop")]
        elif self._typing:
            first = [("send", "send")]
        else:
            first = [("prompt", "type"), ("regen", "again")]
        return [hint(name, word, self.keymap) for name, word in (*first, *_ALWAYS_HINTED)]

    # -- conversations -------------------------------------------------------------------------

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        match slash.read(event.text):
            case slash.Plain(text):
                await self.send(text)
            case slash.Invocation() as invocation:
                await self._slash.run(invocation)
            case slash.Unknown(name, near):
                hint = f" Did you mean {' or '.join('/' + one for one in near)}?" if near else ""
                self.notify_safely(f"There is no /{name}; // sends a slash.{hint}", "warning")
                self.query_one(Prompt).insert_unsent(event.text)

    async def send(self, text: str) -> None:
        """Send a message; if it is refused, its text returns to the prompt."""
        try:
            self.session.send(text)
        except PravahaError as error:
            self.notify_safely(str(error), "error")
            self.query_one(Prompt).insert_unsent(text)
            if isinstance(error, ConversationChanged):
                await self._show_chat()
            return
        self.query_one(Prompt).set_history(self.session.prompt_history())
        if self.pane == "stats" and not self.maximised:
            self.pane = "chat"
        await self._show_chat()
        self.query_one(MessageScroll).anchor()
        self.refresh_list()

    async def open_chat(self, tree_id: str) -> None:
        """Open another conversation."""
        try:
            self.session.open_tree(tree_id)
        except PravahaError as error:
            self.notify_safely(str(error), "error")
            return
        self.pane, self.maximised = "chat", False
        self.screen.remove_class("-list")
        await self._show_chat()
        self.refresh_list()
        self.query_one(Prompt).focus()

    @on(Conversations.Chosen)
    async def _chosen(self, event: Conversations.Chosen) -> None:
        await self.open_chat(event.tree_id)

    @on(Conversations.Filtered)
    def _filtered(self) -> None:
        self.refresh_list()

    @on(ConversationOptions.DeleteAsked)
    def _delete_asked(self, event: ConversationOptions.DeleteAsked) -> None:
        self.ask_delete(event.tree_id)

    def ask_delete(self, tree_id: str) -> None:
        """Archive a conversation after confirmation; it is kept in the database."""

        async def answered(yes: bool | None) -> None:
            if yes:
                self.session.delete_tree(tree_id)
                await self._show_chat()
                self.refresh_list()

        self.push_screen(ConfirmScreen("Archive this conversation?"), answered)

    def show_list(self, query: str = "") -> None:
        """Show and focus the conversation list, filtered by `query`."""
        self.screen.add_class("-list").remove_class("-hide-list")
        self.maximised = False
        chats = self.query_one(Conversations)
        if query:
            self.query_one("#chat-filter", Input).value = query
        self.call_after_refresh(chats.options.focus)

    # -- completions ---------------------------------------------------------------------------

    @on(TextArea.Changed, "#prompt")
    def _show_completions(self, event: TextArea.Changed) -> None:
        lines = slash.build_completions(event.text_area.text)
        completions = self.query_one("#completions", Lines)
        completions.display = bool(lines)
        completions.show(lines)

    # -- actions -------------------------------------------------------------------------------

    def disabled_reasons(self) -> dict[str, str]:
        """Action id → the reason why it is not available now."""
        reasons = {}
        if not self.session.generating:
            reasons["stop"] = "no answer is being generated"
        else:
            reasons["regen"] = "an answer is being generated"
        if not any(node.kind is NodeKind.ASSISTANT for node in self.session.path()):
            reasons["copy"] = "there is no answer yet"
            reasons["regen"] = "there is no answer yet"
        return reasons

    def action_help(self) -> None:
        """Show all keys and commands."""
        self.push_screen(HelpScreen(self.keymap, self.disabled_reasons()))

    def action_copy_or_stop(self) -> None:
        """Ctrl+C: copy a selection, else stop the answer, else quit on the second press in 2 s."""
        selected = self.screen.get_selected_text()
        if isinstance(self.focused, TextArea) and self.focused.selected_text:
            selected = self.focused.selected_text
        if selected:
            self._copy(selected)
            self.screen.clear_selection()
        elif self.session.generating:
            self.action_stop()
        elif self._clock() - self._interrupted_at <= _QUIT_WINDOW_S:
            self.run_worker(self.action_quit())
        else:
            self._interrupted_at = self._clock()
            self.notify_safely("Press ctrl+c again to quit.")

    async def action_escape(self) -> None:
        """Undo one thing; see `view/escape.py` for the order."""
        overlay = self.screen.has_class("-list") and not self._wide_enough_for_list
        transcript = self.query_one(Transcript)
        state = EscapeState(
            popup=overlay,
            maximised=self.maximised or self.pane != "chat",
            selection=transcript.selected is not None or bool(self.screen.get_selected_text()),
            queued=bool(self.session.queued),
            generating=self.session.generating,
            prompting=self._typing,
        )
        match escape_effect(state):
            case EscapeEffect.CLOSE_POPUP:
                self.screen.remove_class("-list")
                self.query_one(Prompt).focus()
            case EscapeEffect.RESTORE_PANE:
                self.action_pane("chat")
            case EscapeEffect.DROP_SELECTION:
                transcript.clear_selection()
                self.screen.clear_selection()
            case EscapeEffect.WITHDRAW_QUEUED:
                withdrawn = self.session.withdraw()
                if withdrawn is not None:
                    self.query_one(Prompt).insert_unsent(withdrawn)
                self.frame_clock.wake()
            case EscapeEffect.STOP:
                self.action_stop()
            case EscapeEffect.NAVIGATE:
                self.action_navigate()
            case EscapeEffect.NOTHING:
                pass

    @property
    def _wide_enough_for_list(self) -> bool:
        return self.screen.has_class("-medium") or self.screen.has_class("-wide")

    async def action_new_chat(self) -> None:
        """Open an empty conversation; a running answer continues in the background."""
        self.session.new_tree()
        self.pane, self.maximised = "chat", False
        await self._show_chat()
        self.refresh_list()
        self.query_one(Prompt).focus()

    def action_conversations(self) -> None:
        """Show and focus the list, or hide it if it has the focus."""
        chats = self.query_one(Conversations)
        if chats.has_focus_within:
            self.screen.remove_class("-list")
            self.query_one(Prompt).focus()
        else:
            self.show_list()

    def action_theme(self) -> None:
        """Open the theme list with live preview."""

        def chosen(name: str | None) -> None:
            if name is not None:
                self._on_theme(name)

        self.push_screen(ThemePicker(self.theme_files, self.theme), chosen)

    def use_theme(self, name: str) -> None:
        """Switch to a theme by name and save the choice."""
        if self._show_theme(name):
            self._on_theme(name)

    def _show_theme(self, name: str) -> bool:
        """Switch to a theme; False after a notification if there is none of that name."""
        found = self.theme_files.get(name)
        if found is not None and found.theme is not None:
            self.theme = name
            return True
        near = difflib.get_close_matches(name, self.theme_files, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        self.notify_safely(f"There is no theme {name}.{hint}", "warning")
        return False

    def change_scheduling(self, **changes: str) -> None:
        """Change policy or batch former for all requests of this engine."""
        try:
            wanted = replace(self.client.snapshot().scheduling, **changes)  # type: ignore[arg-type]
            self.client.set_scheduling(wanted)
        except PravahaError as error:
            self.notify_safely(str(error), "error")
            return
        steps = f"{wanted.batch_former} steps"
        if wanted.batch_former == "timed":
            steps += f" of {wanted.step_target_ms:g} ms"
        self.notify_safely(f"Scheduling: {POLICY_TITLES[wanted.policy]}; {steps}.")

    async def action_quit(self) -> None:
        """Quit; the conversation is saved. Asks first if it cannot be."""
        reason = self.session.unsaved
        if reason is None:
            self.exit()
        elif not isinstance(self.screen, ConfirmScreen):
            confirm = ConfirmScreen("Quit and lose the last messages?", f"Not saved: {reason}.")
            self.push_screen(confirm, lambda yes: self.exit() if yes else None)

    def action_pane(self, name: Pane) -> None:
        """Show and focus a pane; a second call maximises it, a third restores the chat."""
        if name == "chat":
            self.pane, self.maximised = "chat", False
            self.query_one(Prompt).focus()
            return
        if self.pane == name and self.maximised:
            self.action_pane("chat")
            return
        beside = name == "stats" or self.screen.has_class("-wide")
        self.maximised = self.pane == name or not beside
        self.pane = name
        target = KvMap if name == "kv" else StatsPane
        self.call_after_refresh(lambda: self.query_one(target).focus())

    def action_scroll_messages(self, pages: int) -> None:
        """Scroll the messages by pages, whichever widget has the focus."""
        messages = self.query_one(MessageScroll)
        (messages.scroll_page_down if pages > 0 else messages.scroll_page_up)(animate=False)

    def action_prompt(self) -> None:
        """Focus the prompt."""
        self.query_one(Prompt).focus()

    def action_navigate(self) -> None:
        """Focus the messages."""
        self.query_one(MessageScroll).focus()

    async def action_message(self, where: str) -> None:
        """Move the cursor over the messages."""
        await self.query_one(Transcript).select(where)

    async def action_regenerate(self) -> None:
        """Regenerate the last answer as a sibling."""
        try:
            self.session.regenerate()
        except PravahaError as error:
            self.notify_safely(str(error), "warning")
            if not isinstance(error, ConversationChanged):
                return
        await self._show_chat()

    def action_stop(self) -> None:
        """Stop the answer at the engine's next step; its text is kept."""
        self.session.stop()
        self._draw_all()

    def action_copy(self) -> None:
        """Copy the selected message, else the last answer, as Markdown."""
        selected = self.query_one(Transcript).selected
        nodes = [
            node
            for node in self.session.path()
            if (node.id == selected.id if selected else node.kind is NodeKind.ASSISTANT)
        ]
        if nodes:
            self._copy(nodes[-1].text)
        else:
            self.notify_safely("There is no answer to copy yet.", "warning")

    def _copy(self, text: str) -> None:
        name = clipboard.copy(text, clipboard.choose_path(os.environ), self.copy_to_clipboard)
        self.notify_safely(f"{len(text)} characters copied with {name}.")

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(id="--command-palette"))
