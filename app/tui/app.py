"""`PravahaApp` composes the objects of the screen and connects bindings, actions and events to them.

Behaviour lives elsewhere: sending in `sending.py`, what keys do in `actions/`, drawing in `drawing.py` and
`presenter.py`, panes and focus in `screen_layout.py`, slash commands in `slash_actions.py`.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import Screen, ScreenResultCallbackType
from textual.widget import AwaitMount
from textual.widgets import Markdown, TextArea

from agents.service.run_service import RunService
from app.runtime.chat_tools import ChatTools
from app.runtime.model_hub import ModelHub
from app.runtime.project_tests import ProjectTests, run_project_tests
from app.runtime.source_library import SourceLibrary
from app.settings.shown_setting import ShownSetting
from app.slash.completion import Completion
from app.text.log_ring import LogRing
from app.tui.action_groups import ActionGroups
from app.tui.actions.serving import EngineServer
from app.tui.actions.themes import ThemeActions
from app.tui.agent_names import AgentNames
from app.tui.ascii_filter import AsciiFilter
from app.tui.availability import Availability
from app.tui.avatar import figures
from app.tui.completer import Completer
from app.tui.draft_keeper import DraftKeeper
from app.tui.drawing import Drawing
from app.tui.escape_key import EscapeKey
from app.tui.exit_signals import exit_on_signals
from app.tui.fork_costs import ForkCosts
from app.tui.fork_prices import ForkPrices
from app.tui.glyphs import choose_glyphs
from app.tui.hints import GROUPS, focused_pane
from app.tui.input_events import InputTap, is_input
from app.tui.key_presets import with_preset
from app.tui.keys import APP_KEYS, bindings, hint, read_keymap, to_textual
from app.tui.main_view import MainView
from app.tui.marks import Marks
from app.tui.output.finish_notice import FinishNotice, Means
from app.tui.palette import PaletteEntries, PravahaCommands
from app.tui.presenter import Presenter
from app.tui.screen_layout import ScreenLayout
from app.tui.selection import EMPTY, Selection
from app.tui.sending import Sending, typed_before
from app.tui.slash_actions import SlashActions
from app.tui.status_hints import StatusHints
from app.tui.stopping import Stopping
from app.tui.surviving_app import SurvivingApp
from app.tui.terminal import Terminal
from app.tui.textual_workarounds.all_arguments import takes_all_arguments
from app.tui.textual_workarounds.continued import repaint_when_continued
from app.tui.textual_workarounds.freed_lines import free_lines_of_removed_widgets
from app.tui.textual_workarounds.ordered_input import OrderedInput
from app.tui.textual_workarounds.paced_output import PacedOutput
from app.tui.textual_workarounds.parsed_once import ParsedOnce
from app.tui.textual_workarounds.partial_compositor import MainScreen
from app.tui.themes import default_theme
from app.tui.toasts import Severity, toast
from app.tui.view.citations import HREF
from app.tui.view.session_lines import SessionFigures
from app.tui.widgets.approvals_pane import ApprovalsPane
from app.tui.widgets.branches import BranchTreeView
from app.tui.widgets.cards import AskCount, CardStrip
from app.tui.widgets.compare import ComparePane
from app.tui.widgets.completions import Completions
from app.tui.widgets.conversations import ConversationOptions, Conversations
from app.tui.widgets.dialog import Palette
from app.tui.widgets.help import HelpScreen
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.message import Message as TranscriptMessage
from app.tui.widgets.needs_drawing import NeedsDrawing
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.sources_pane import SourcesPane
from app.tui.widgets.token_view import TokenView
from app.tui.widgets.transcript import Transcript
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession
from engine.retrieval.parsing.image_reader import ImageReader

T = TypeVar("T")

_FOLLOW_S = 0.5
"""Seconds between two looks at what other processes have written; a running answer is saved as often."""


class PravahaApp(OrderedInput, SurvivingApp, PacedOutput):
    """The full-screen chat.

    Args:
        theme: name of the initial theme; None takes the default.
        true_colors: whether the terminal shows 24-bit colours; otherwise themes use their 256-colour roles.
        avatar: name of the figure, or `off`.
        avatars_dir: the user's own figures, which override ours.
        notify_by: how to tell that a long answer ended while the terminal was not focused.
        first_start: whether to show the hint for someone who has not used the screen before.
        themes_dir: the user's own themes, which override ours.
        keymap: action id → keys, for remapping; `preset` names a set of `key_presets`.
        server: the address of the engine's server; None for an engine in this process.
        engine_server: serves the engine of this process over HTTP on demand; None if there is none.
        run_service: runs agents; None in a replay.
        edit_root: the folder beneath which answers may change files; None in a replay.
        project_tests: runs the tests of the project in that folder.
        memory_file: what the agents remember on this machine; None in a replay.
        sources: the collections of documents; None in a replay.
        sessions: returns what the prompts of the last conversations have cost.
        image_reader: reads the text of images; None in a replay.
        log_file: where tracebacks are, for messages about failures.
        log_ring: the records of the log pane; None for none.
        settings: what `/settings` and the palette show.
        model_hub: downloads models; None if the engine is that of a server, and in a replay.
        on_theme: called with the name of a theme that was chosen, to save it.
        on_model: called with the name of a model that was chosen and is loaded, to save it.
        on_first_frame: called after the first frame is drawn; starts loading the model.
        inputs: sees every input event first, to record or replay them.
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

    def __init__(
        self,
        client: EngineClient,
        session: TreeSession,
        *,
        version: str,
        server: str | None = None,
        engine_server: EngineServer | None = None,
        run_service: RunService | None = None,
        chat_tools: ChatTools | None = None,
        edit_root: Path | None = None,
        project_tests: ProjectTests = run_project_tests,
        memory_file: Path | None = None,
        sources: SourceLibrary | None = None,
        sessions: Callable[[], Sequence[SessionFigures]] = tuple,
        image_reader: ImageReader | None = None,
        theme: str | None = None,
        true_colors: bool = True,
        avatar: str = figures.DEFAULT,
        avatars_dir: Path | None = None,
        notify_by: Means = "off",
        first_start: bool = False,
        themes_dir: Path | None = None,
        keymap: dict[str, str] | None = None,
        log_file: Path | None = None,
        log_ring: LogRing | None = None,
        settings: Sequence[ShownSetting] = (),
        model_hub: ModelHub | None = None,
        on_theme: Callable[[str], None] = lambda name: None,
        on_model: Callable[[str], None] = lambda name: None,
        on_first_frame: Callable[[], None] = lambda: None,
        inputs: InputTap | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.stylesheet = ParsedOnce(variables=self.get_css_variables())
        self.client = client
        self.session = session
        self.version = version
        self._server = server
        self._log_file = log_file
        self._log_ring = log_ring or LogRing()
        self._on_first_frame = on_first_frame
        self._inputs = inputs
        self._wall_clock = wall_clock
        entries, unknown_presets = with_preset(keymap or {})
        self.keymap, unknown_keys = read_keymap(entries)
        self._glyphs = choose_glyphs(os.environ, sys.stdout.encoding)
        self._ascii = AsciiFilter(enabled=self._glyphs.name == "ascii")
        themes = ThemeActions(
            self, self, folder=themes_dir, true_colors=true_colors, on_theme=on_theme
        )
        self._wanted_theme = theme or default_theme(os.environ)
        roles = self.get_theme_variable_defaults() | self.current_theme.variables
        figure, no_figure = figures.choose_figure(avatar, roles, avatars_dir)
        self._problems = [*unknown_presets, *unknown_keys, *([no_figure] if no_figure else [])]
        self.drawing = Drawing(self, client, session, on_error=self._tick_failed, clock=clock)
        self.frame_clock = self.drawing.frame_clock
        self.terminal = Terminal(self)
        self.layout = layout = ScreenLayout(self, self.draw_all)
        self.selection = Selection(self)
        self.marks = Marks()
        self.fork_prices = ForkPrices(session, client, clock=clock)
        self.fork_costs = ForkCosts(self.notify_safely)
        self._drafts = DraftKeeper(session)
        self.actions = actions = ActionGroups(
            self,
            layout,
            self.selection,
            self.terminal,
            themes=themes,
            marks=self.marks,
            drafts=self._drafts,
            fork_prices=self.fork_prices,
            fork_costs=self.fork_costs,
            glyphs=self._glyphs,
            keymap=self.keymap,
            go_in_time=self.drawing.go_in_time,
            wall_clock=wall_clock,
            run_service=run_service,
            chat_tools=chat_tools,
            edit_root=edit_root,
            project_tests=project_tests,
            sources=sources,
            image_reader=image_reader,
            engine_server=engine_server,
            server=server,
            settings=settings,
            model_hub=model_hub,
            on_model=on_model,
        )
        self.sending = Sending(
            self, layout, self._drafts, actions, run_command=lambda call: self.slash.run(call)
        )
        actions.edits.send_by(self.sending.send)
        self.slash = SlashActions(
            self,
            actions,
            self.sending,
            layout,
            self.terminal,
            memory_file=memory_file,
            run_action=self.run_action,
        )
        self.stopping = Stopping(self, self.terminal, exit_app=lambda: self.exit(), clock=clock)
        self.escape = EscapeKey(
            self, layout, self.drawing, self.sending, actions, self.marks, self.stopping, clock
        )
        self.availability = Availability(self, self.selection, actions.tokens)
        self.agent_names = AgentNames(run_service)
        self.completer = Completer(
            self, actions, self.agent_names, settings, on_more=self._more_completes
        )
        self.palette = PaletteEntries(
            self,
            actions,
            self.slash,
            availability=self.availability,
            agent_names=self.agent_names,
            keymap=self.keymap,
            run_action=self.run_action,
        )
        self._hints = StatusHints(
            self,
            self.selection,
            self.drawing,
            actions,
            marks=self.marks,
            fork_prices=self.fork_prices,
            keymap=self.keymap,
        )
        self._notice = FinishNotice(
            notify_by,
            os.environ,
            focused=lambda: self.app_focus,
            write=self.terminal.write_sequence,
        )
        self.view = MainView(
            session,
            actions,
            self.completer,
            figure=figure,
            figure_shown=avatar != figures.OFF,
            animate=self.animation_level != "none",
            glyphs=self._glyphs,
            marks=self.marks,
            fork_prices=self.fork_prices,
            fork_costs=self.fork_costs,
            notice=self._notice,
            run_service=run_service,
            log_ring=self._log_ring,
            sessions=sessions,
            keymap=self.keymap,
            first_start=first_start,
            colored=not self.no_color,
            wall_clock=wall_clock,
        )

    # -- composition ---------------------------------------------------------------------------

    def get_default_screen(self) -> MainScreen:
        """The main screen, with its classes: setting one later applies the style sheet to all widgets."""
        classes = {
            f"-pane-{self.layout.pane}": True,
            "-small-figure": self.view.avatars[1].has_small,
            "-empty": not self.session.path(),
        }
        names = " ".join(name for name, wanted in classes.items() if wanted)
        return MainScreen(self.drawing.context, classes=names)

    def compose(self) -> ComposeResult:
        """The widgets of the main screen."""
        yield from self.view.compose()

    async def on_mount(self) -> None:
        """Apply theme and keys, show the open conversation, start the clock, load the model."""
        self.actions.themes.start(self._wanted_theme)
        for problem in self._problems:
            self.notify_safely(problem, "warning")
        self.set_keymap(to_textual(self.keymap))
        prompt = self.query_one(Prompt)
        prompt.set_history(typed_before(self.session.messages.history()))
        prompt.show_draft(self._drafts.enter())
        prompt.focus()
        self.marks.listen(lambda: self.query_one(Transcript).show_marked(self.marks.ids))
        self.marks.listen(self.draw_all)
        compare = self.actions.compare
        self.drawing.presenter = Presenter(
            self.client,
            self.session,
            transcript=self.query_one(Transcript),
            panes=self.view.panes,
            streams=[self.query_one(CardStrip), self.query_one(ComparePane)],
            live=self.query_one(KvPane),
            written=lambda: self.pace.total,
            on_settled=self.actions.listing.refresh,
            mode=lambda: "PROMPT" if self.layout.typing else f"NAVIGATE{compare.pending_key}",
            hints=self._hints.current,
            server=self._server,
            serving=lambda: self.actions.serving.url,
            retry_key=hint("regen", "", self.keymap)[0],
            wall_clock=self._wall_clock,
            animate=self.animation_level != "none",
        )
        await self.show_chat()
        repaint_when_continued(self)
        free_lines_of_removed_widgets()
        exit_on_signals(lambda status: self.exit(return_code=status))
        self._log_ring.listen(self._recorded)
        self.drawing.start()
        # A timer of the screen ends with it; one of the app would outlive the widgets that it draws.
        self.main.set_interval(_FOLLOW_S, self.actions.conversations.follow_others)
        self.call_after_refresh(self._on_first_frame)
        self.call_after_refresh(self.survive_failures)

    async def on_unmount(self) -> None:
        """Save the draft and stop the clock."""
        self._drafts.leave()
        self.actions.draft.leave()
        await self.drawing.stop()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, and `AsciiFilter` for ASCII terminals."""
        return [*super().get_line_filters(), *([self._ascii] if self._ascii.enabled else [])]

    # -- what actions ask of the screen: see `ChatScreen` ----------------------------------------

    @property
    def main(self) -> Screen[Any]:
        """The screen of the messages."""
        return self.screen_stack[0]

    @property
    def dialog(self) -> Screen[Any] | None:
        """The topmost dialog."""
        return self.screen if len(self.screen_stack) > 1 else None

    def open_dialog(
        self, dialog: Screen[T], answered: ScreenResultCallbackType[T] | None = None
    ) -> AwaitMount:
        """Open a dialog over the screen; no effect if one of its class is open already."""
        if any(type(screen) is type(dialog) for screen in self.screen_stack):
            return AwaitMount(self.screen, [])
        return self.push_screen(dialog, answered)

    def notify_safely(self, text: str, severity: Severity = "information") -> None:
        """Show a notification, with control sequences removed."""
        toast(self, text, severity)

    async def show_chat(self) -> None:
        """Show the messages of the open path."""
        path = self.session.path()
        self.screen.set_class(not path, "-empty")
        await self.main.query_one(Transcript).load(path)
        self.actions.tree.leave_lost_edit()
        self.actions.listing.refresh()
        self.draw_all()

    def draw_all(self) -> None:
        """Draw everything at the next tick, and wake the clock."""
        self.drawing.draw_all()

    def wake(self) -> None:
        """Let the clock tick, from any thread."""
        self.frame_clock.wake()

    # -- events --------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, unless it is input that a replay does not let through."""
        if self._inputs is None or not is_input(event) or self._inputs.let_through(event):
            await super().on_event(event)

    def on_deferred(self) -> None:
        """Let the clock tick until it is drawn: the terminal may not answer."""
        self.wake()

    def _tick_failed(self, error: Exception) -> None:
        if not self.survive(error):
            self._handle_exception(error)

    def on_failure(self, error: BaseException) -> None:
        """Report an exception that the app survived."""
        where = f"details in {self._log_file}" if self._log_file else "the log has the details"
        self.notify_safely(f"This failed: {type(error).__name__}: {error}; {where}.", "error")

    def on_resize(self, event: events.Resize) -> None:
        """Draw everything again."""
        self.layout.resized(event.size)
        # Of several resizes in a row only the last is handled. If its size is the one that was drawn, Textual
        # draws nothing, but the terminal has lost what did not fit meanwhile.
        self.action_repaint()
        self.draw_all()

    def on_descendant_focus(self) -> None:
        """Tell the layout, unless the app has ended meanwhile."""
        if self.screen_stack:
            self.layout.focus_moved()

    def _recorded(self) -> None:
        """A record was logged, on any thread."""
        if self.layout.pane == "logs":
            self.wake()

    @on(NeedsDrawing)
    def _needs_drawing(self) -> None:
        self.draw_all()

    def on_paste(self, event: events.Paste) -> None:
        """Text that was pasted where nothing is typed goes into the prompt: none of it is a command."""
        prompt = self.query_one(Prompt)
        if self.dialog is None and not self.layout.typing and prompt.is_on_screen:
            prompt.insert(event.text)
            self.layout.focus_prompt()

    @on(TextArea.Changed, "#prompt")
    def _prompt_changed(self, event: TextArea.Changed) -> None:
        text = event.text_area.text
        self.sending.text_changed(text)
        is_edit = self.query_one(Prompt).editing is not None  # an edited message is no command
        prompt = self.query_one(Prompt)
        found = None if is_edit else self.completer.complete(prompt.before_cursor)
        self.query_one(Completions).show_completion(found)

    def _more_completes(self, found: Completion | None) -> None:
        """More names are known that complete the text of the prompt."""
        self.query_one(Completions).show_completion(found)
        self.query_one(Prompt).names_arrived(found)

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        await self.sending.submit(event.text, event.editing)

    @on(Conversations.Chosen)
    async def _chosen(self, event: Conversations.Chosen) -> None:
        await self.actions.conversations.open(event.tree_id)

    @on(Conversations.Filtered)
    def _filtered(self) -> None:
        self.actions.listing.refresh()

    @on(ConversationOptions.DeleteAsked)
    def _delete_asked(self, event: ConversationOptions.DeleteAsked) -> None:
        self.actions.conversations.ask_delete_listed(event.tree_id)

    @on(BranchTreeView.Opened)
    async def _branch_opened(self) -> None:
        await self.action_perform("go", "enter")

    @on(TokenView.Pointed)
    async def _pointed_at_token(self, event: TokenView.Pointed) -> None:
        await self.actions.tokens.point(event.node_id, event.unit)

    @on(AskCount.Answered)
    async def _count_answered(self, event: AskCount.Answered) -> None:
        await self.actions.compare.answer_count(event.count)

    @on(ApprovalsPane.Opened)
    def _approval_opened(self, event: ApprovalsPane.Opened) -> None:
        self.actions.agents.open_approval(event.request)

    @on(SourcesPane.Opened)
    async def _passage_opened(self, event: SourcesPane.Opened) -> None:
        await self.action_perform("sources", "open_number", event.number)

    @on(SourcesPane.AttachAsked)
    async def _attach_asked(self, event: SourcesPane.AttachAsked) -> None:
        await self.action_perform("sources", "toggle", event.name)

    @on(SourcesPane.WatchAsked)
    async def _watch_asked(self, event: SourcesPane.WatchAsked) -> None:
        await self.action_perform("sources", "toggle_watch", event.name)

    @on(SourcesPane.RemoveAsked)
    async def _remove_asked(self, event: SourcesPane.RemoveAsked) -> None:
        await self.action_perform("sources", "ask_to_remove", event.name, event.path)

    @on(Markdown.LinkClicked)
    async def _link_clicked(self, event: Markdown.LinkClicked) -> None:
        number, message = event.href.removeprefix(HREF), event.markdown.parent
        if number != event.href and isinstance(message, TranscriptMessage):
            await self.action_perform("sources", "open_citation", f"{message.node.id}/{number}")

    # -- actions -------------------------------------------------------------------------------

    @takes_all_arguments
    async def action_perform(self, group: str, name: str, *arguments: str | int) -> None:
        """Call a method of a group of actions."""
        await self.actions.perform(group, name, *arguments)

    @takes_all_arguments
    def action_perform_later(self, group: str, name: str, *arguments: str | int) -> None:
        """As `perform`, for a click on a message, which the action may remove.

        The message would handle its click and wait for its own removal.
        """
        self.call_later(self.action_perform, group, name, *arguments)

    def action_help(self) -> None:
        """Show all keys and commands."""
        first = GROUPS[focused_pane(self.focused)]
        self.open_dialog(HelpScreen(self.keymap, self.availability.reasons(), first))

    def action_command_palette(self) -> None:
        """Open the command palette."""
        self.open_dialog(Palette(id="--command-palette"))

    async def action_quit(self) -> None:
        """Quit; asks first if the conversation cannot be saved."""
        self.stopping.quit()

    def action_copy_or_stop(self) -> None:
        """Ctrl+C: copy a selection, else stop the answer, else quit on the second press."""
        self.stopping.interrupt()

    def action_escape(self) -> None:
        """Undo one thing."""
        self.escape.press()

    async def action_new_chat(self) -> None:
        """Open an empty conversation."""
        await self.actions.conversations.new()

    def action_theme(self) -> None:
        """Open the theme list."""
        self.actions.themes.choose()

    def action_pane(self, name: str) -> None:
        """Show and focus a pane; a second call maximises it, a third restores the chat."""
        self.layout.open_pane(name)

    def action_prompt(self) -> None:
        """Focus the prompt."""
        self.layout.focus_prompt()

    def action_navigate(self) -> None:
        """Focus the messages."""
        self.layout.focus_messages()

    def action_scroll_messages(self, pages: int) -> None:
        """Scroll the messages by pages, whichever widget has the focus."""
        self.layout.scroll_messages(pages)

    async def action_message(self, where: str) -> None:
        """Move the cursor over the messages."""
        if self.session.head is None:
            self.notify_safely(EMPTY, "warning")
        await self.query_one(Transcript).select(where)
        self.draw_all()  # the token cursor is on the selected message only

    def action_repaint(self) -> None:
        """Draw the whole screen again, whatever another program has written over it."""
        self.screen.refresh()
