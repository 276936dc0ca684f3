"""`PravahaApp` connects bindings and actions to calls on the session, the client or a widget.

Behaviour lives elsewhere: drawing in `presenter.py`, slash commands in `slash_actions.py`, the effect of
Esc in `view/escape.py`.
"""

import asyncio
import difflib
import inspect
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.filter import LineFilter
from textual.reactive import reactive
from textual.screen import Screen, ScreenResultCallbackType
from textual.widget import Widget
from textual.widgets import Input, Markdown, TextArea

from agents.service.run_service import RunService
from app.runtime.source_library import SourceLibrary
from app.slash import parse
from app.text.log_ring import LogRing
from app.tui import clipboard, slash
from app.tui.actions.agents import AgentActions
from app.tui.actions.archive import ArchiveActions
from app.tui.actions.compare import CompareActions
from app.tui.actions.context import ContextActions
from app.tui.actions.files import FileActions
from app.tui.actions.go import GoActions
from app.tui.actions.jump import JumpActions
from app.tui.actions.kv import KvActions
from app.tui.actions.listing import ListActions
from app.tui.actions.merge import MergeActions
from app.tui.actions.models import ModelActions
from app.tui.actions.pictures import PictureActions
from app.tui.actions.sampling import SamplingActions
from app.tui.actions.scheduler import SchedulerActions, TimeActions
from app.tui.actions.search import SearchActions
from app.tui.actions.serving import EngineServer, ServingActions
from app.tui.actions.sources import SourceActions
from app.tui.actions.target import EMPTY
from app.tui.actions.tokens import TokenActions
from app.tui.actions.tree import TreeActions
from app.tui.agent_names import AgentNames
from app.tui.ascii_filter import AsciiFilter
from app.tui.availability import disabled_reasons
from app.tui.avatar import figures
from app.tui.draft_keeper import DraftKeeper
from app.tui.fork_costs import ForkCosts
from app.tui.fork_prices import ForkPrices
from app.tui.frame import Pane
from app.tui.frame_clock import FrameClock
from app.tui.glyphs import Glyphs, choose_glyphs
from app.tui.hints import GROUPS, PRICED, build_hints_of, focused_pane
from app.tui.input_events import InputTap, is_input
from app.tui.key_presets import with_preset
from app.tui.keys import APP_KEYS, bindings, hint, read_keymap, to_textual
from app.tui.marks import Marks
from app.tui.output.finish_notice import FinishNotice, Means
from app.tui.palette import PravahaCommands
from app.tui.panes import CHAT, PANES
from app.tui.presenter import Presenter
from app.tui.slash_actions import SlashActions
from app.tui.surviving_app import SurvivingApp
from app.tui.textual_workarounds.all_arguments import takes_all_arguments
from app.tui.textual_workarounds.continued import repaint_when_continued
from app.tui.textual_workarounds.freed_lines import free_lines_of_removed_widgets
from app.tui.textual_workarounds.mouse_driver import MouseDriver
from app.tui.textual_workarounds.ordered_input import OrderedInput
from app.tui.textual_workarounds.paced_output import PacedOutput
from app.tui.textual_workarounds.parsed_once import ParsedOnce
from app.tui.textual_workarounds.partial_compositor import MainScreen
from app.tui.themes import BUILT_IN, DEFAULT, ThemeFile, default_theme, load_themes
from app.tui.toasts import Severity, toast
from app.tui.view.citations import HREF
from app.tui.view.escape import EscapeEffect, EscapeState, escape_effect
from app.tui.view.key_hints import KeyHint
from app.tui.view.messages import SiblingPlace
from app.tui.view.price import build_price
from app.tui.view.spans import Line
from app.tui.widgets.agents_pane import AgentsPane
from app.tui.widgets.approvals_pane import ApprovalsPane
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.branches import BranchPane, BranchTreeView
from app.tui.widgets.cards import AskCount, CardStrip
from app.tui.widgets.compare import ComparePane
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import ConversationOptions, Conversations
from app.tui.widgets.crumbs import Crumbs
from app.tui.widgets.dialog import Palette
from app.tui.widgets.header import Header
from app.tui.widgets.help import HelpScreen
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.lines import Lines
from app.tui.widgets.loading import FirstKeys, LoadingView
from app.tui.widgets.log_pane import LogPane
from app.tui.widgets.message import Message as TranscriptMessage
from app.tui.widgets.needs_drawing import NeedsDrawing
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.queued import Queued
from app.tui.widgets.scheduler import SchedulerPane
from app.tui.widgets.sources_pane import SourcesPane
from app.tui.widgets.stats import StatsPane
from app.tui.widgets.status_bar import MIN_COLUMNS, MIN_ROWS, StatusBar
from app.tui.widgets.theme_picker import ThemePicker
from app.tui.widgets.token_view import TokenView
from app.tui.widgets.transcript import MessageScroll, Transcript
from app.tui.widgets.vitals import Vitals
from engine.api.errors import InvalidRequest, PravahaError
from engine.api.image import Image
from engine.clients.engine_client import EngineClient
from engine.conversations.errors import ContextFull, ConversationChanged
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.parsing.picture_reader import PictureReader

P = TypeVar("P", bound=Widget)
T = TypeVar("T")

_QUIT_WINDOW_S = 2.0
_DOUBLE_ESC_S = 0.5
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
        memory_file: what the agents remember on this machine; None in a replay.
        sources: the collections of documents; None in a replay.
        pictures: reads the text of pictures; None in a replay.
        log_file: where tracebacks are, for messages about failures.
        log_ring: the records of the log pane; None for none.
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

    pane: reactive[str] = reactive(CHAT, init=False)
    maximised: reactive[bool] = reactive(False, init=False)

    def __init__(
        self,
        client: EngineClient,
        session: TreeSession,
        *,
        version: str,
        server: str | None = None,
        engine_server: EngineServer | None = None,
        run_service: RunService | None = None,
        memory_file: Path | None = None,
        sources: SourceLibrary | None = None,
        pictures: PictureReader | None = None,
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
        self.theme_files: dict[str, ThemeFile] = load_themes(
            [BUILT_IN, *([themes_dir] if themes_dir else [])]
        )
        self._wanted_theme = theme or default_theme(os.environ)
        # The stylesheet refers to our theme variables: register a theme before it is parsed.
        for found in self.theme_files.values():
            palette = found.theme if true_colors else found.theme_256
            if palette is not None:
                self.register_theme(palette)
        self.theme = DEFAULT
        entries, unknown = with_preset(keymap or {})
        self.keymap, problems = read_keymap(entries)
        self._key_problems = [*unknown, *problems]
        self._log_file = log_file
        self._log_ring = log_ring or LogRing()
        self._on_theme = on_theme
        self.on_model = on_model
        self._on_first_frame = on_first_frame
        self._inputs = inputs
        self._clock = clock
        self.wall_clock = wall_clock
        self._glyphs = choose_glyphs(os.environ, sys.stdout.encoding)
        self._ascii = AsciiFilter(enabled=self._glyphs.name == "ascii")
        roles = self.get_theme_variable_defaults() | self.current_theme.variables
        figure, self._avatar_problem = figures.choose_figure(avatar, roles, avatars_dir)
        animate, colored = self.animation_level != "none", not self.no_color
        self._first_start = first_start
        self._avatars = tuple(
            Avatar(figure, self._glyphs, animate=animate, colored=colored) for _ in range(2)
        )
        for shown in self._avatars:
            shown.display = avatar != figures.OFF
        self.slash = SlashActions(self)
        self._tree, self._go = TreeActions(self), GoActions(self)
        self.tokens = TokenActions(self, self._glyphs)
        self.marks = Marks()
        self.compare = CompareActions(self)
        self.kv = KvActions(self)
        self.search = SearchActions(self)
        self.context = ContextActions(self)
        self.merge = MergeActions(self)
        self.archive = ArchiveActions(self)
        self.listing = ListActions(self)
        self.files = FileActions(self)
        self.scheduler = SchedulerActions(self)
        self.agents = AgentActions(self, run_service)
        self._run_service = run_service
        self.memory_file = memory_file
        self.sources = SourceActions(self, sources)
        self.pictures = PictureActions(self, pictures)
        self.agent_names = AgentNames(run_service)
        self._actions: dict[str, object] = {
            "agents": self.agents,
            "tokens": self.tokens,
            "archive": self.archive,
            "files": self.files,
            "jump": JumpActions(self),
            "merge": self.merge,
            "scheduler": self.scheduler,
            "search": self.search,
            "sources": self.sources,
            "time": TimeActions(self),
            "kv": self.kv,
            "tree": self._tree,
            "go": self._go,
            "compare": self.compare,
        }
        self.fork_prices = ForkPrices(session, client, clock=clock)
        self.fork_costs = ForkCosts(self.notify_safely)
        self.models = ModelActions(self)
        self.sampling = SamplingActions(self)
        self.serving = ServingActions(self, engine_server, attached_to=server)
        self.panes: list[Pane] = [self.models, self.tokens, self.kv]
        self._notice = FinishNotice(
            notify_by, os.environ, focused=lambda: self.app_focus, write=self.write_sequence
        )
        self._drafts = DraftKeeper(session)
        self._presenter: Presenter | None = None
        self.frame_clock = FrameClock(self._tick, on_error=self._tick_failed, clock=clock)
        self._interrupted_at = float("-inf")
        self._escaped_at = float("-inf")
        self._focused_before: Widget | None = None
        self._typed_before = True

    # -- composition ---------------------------------------------------------------------------

    def get_default_screen(self) -> MainScreen:
        """The main screen, with its classes: setting one later applies the style sheet to all widgets."""
        classes = {
            f"-pane-{self.pane}": True,
            "-small-figure": self._avatars[1].has_small,
            "-empty": not self.session.path(),
        }
        names = " ".join(name for name, wanted in classes.items() if wanted)
        return MainScreen(self._drawing_context, classes=names)

    def compose(self) -> ComposeResult:
        """Header, three columns, status bar."""
        glyphs = self._glyphs
        yield self._joined(Header(self._avatars[1], glyphs, id="header"))
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Conversations(glyphs, wall_clock=self.wall_clock, id="chats")
                yield self._joined(
                    BranchPane(self.session, self.fork_prices, self.marks, glyphs, id="branches")
                )
            with Vertical(id="center"):
                yield self._joined(Crumbs(glyphs, id="crumbs"))
                yield self._joined(
                    LoadingView(self._avatars[0], glyphs, first=self._first_keys(), id="welcome")
                )
                yield Transcript(
                    glyphs,
                    place_of=self._place_of,
                    rows_below=self._rows_below,
                    id="transcript",
                )
                yield self._joined(
                    SourcesPane(self.sources, glyphs, id="sources", classes="center-pane")
                )
                yield self._joined(StatsPane(glyphs, id="stats", classes="center-pane"))
                yield self._joined(SchedulerPane(glyphs, id="scheduler", classes="center-pane"))
                yield self._joined(LogPane(self._log_ring, id="logs", classes="center-pane"))
                yield self._joined(
                    AgentsPane(
                        self._run_service,
                        glyphs,
                        wall_clock=self.wall_clock,
                        id="agents",
                        classes="center-pane",
                    )
                )
                yield self._joined(
                    ApprovalsPane(
                        self._run_service,
                        glyphs,
                        wall_clock=self.wall_clock,
                        id="approvals",
                        classes="center-pane",
                    )
                )
                yield Lines(id="token-bar")
                yield ComparePane(glyphs, id="compare", classes="center-pane")
                yield CardStrip(glyphs, self.marks, id="cards")
                yield self._joined(Queued(glyphs, id="queued"))
                yield AskCount(glyphs, id="ask-count")
                yield Lines(id="completions")
                yield Prompt(sources=lambda: self.sources.names, id="prompt")
            with Vertical(id="side"):
                yield self._joined(KvPane(glyphs, colored=not self.no_color, id="kv"))
                yield self._joined(Vitals(self._avatars[1], glyphs, id="vitals"))
        yield self._joined(StatusBar(glyphs, id="status"))
        self.panes.extend(
            (self._notice, *self._avatars, self.context, self.fork_costs, self.agents)
        )

    def _first_keys(self) -> FirstKeys | None:
        if not self._first_start:
            return None
        names = ("send", "navigate", "fork", "expand", "help")
        return FirstKeys(*(hint(name, "", self.keymap)[0] for name in names))

    def _joined(self, pane: P) -> P:
        """Draw this pane from every frame."""
        self.panes.append(cast("Pane", pane))
        return pane

    async def on_mount(self) -> None:
        """Apply theme and keys, show the open conversation, start the clock, load the model."""
        self._choose_theme()
        self._apply_keymap()
        if self._avatar_problem:
            self.notify_safely(self._avatar_problem, "warning")
        self.query_one("#completions").display = False
        prompt = self.query_one(Prompt)
        prompt.set_history(self.session.prompt_history())
        prompt.show_draft(self._drafts.enter())
        prompt.focus()
        self.marks.listen(lambda: self.query_one(Transcript).show_marked(self.marks.ids))
        self.marks.listen(self.draw_all)
        self._presenter = Presenter(
            self.client,
            self.session,
            transcript=self.query_one(Transcript),
            panes=self.panes,
            streams=[self.query_one(CardStrip), self.query_one(ComparePane)],
            live=self.query_one(KvPane),
            written=lambda: self.pace.total,
            on_settled=self.refresh_list,
            mode=lambda: "PROMPT" if self._typing else f"NAVIGATE{self.compare.pending_key}",
            hints=self._hints,
            server=self._server,
            serving=lambda: self.serving.url,
            retry_key=hint("regen", "", self.keymap)[0],
            wall_clock=self.wall_clock,
            animate=self.animation_level != "none",
        )
        await self.show_chat()
        self._restore_on_signals()
        self.client.on_wake(self.frame_clock.wake)
        self._log_ring.listen(self._recorded)
        self.frame_clock.start()
        self.set_interval(_FOLLOW_S, self._follow_others)
        self.call_after_refresh(self._on_first_frame)
        self.call_after_refresh(self.survive_failures)

    async def on_unmount(self) -> None:
        """Stop the clock: no tick may follow the removal of the widgets."""
        self._drafts.leave()
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
        free_lines_of_removed_widgets()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            try:
                loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))
            except (NotImplementedError, RuntimeError, ValueError):
                return  # not the main thread (tests), or not POSIX

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, and `AsciiFilter` for ASCII terminals."""
        return [*super().get_line_filters(), *([self._ascii] if self._ascii.enabled else [])]

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, unless it is input that a replay does not let through."""
        if self._inputs is None or not is_input(event) or self._inputs.takes(event):
            await super().on_event(event)

    # -- drawing -------------------------------------------------------------------------------

    async def _tick(self, now: float) -> bool:
        if self._presenter is None or not self.is_running:
            return False
        if self.draw_deferred() or self.pace.resting:
            self._presenter.map_governor.dropped()
            return True
        notice = self.session.take_notice()
        if notice:
            self.notify_safely(notice, "warning")
        try:
            with self._drawing_context():
                more = await self._presenter.tick(now)
        except Exception:
            if not self.is_running:  # the app ended meanwhile, and its widgets are removed
                return False
            raise
        self.frame_clock.governor.crowded = self._presenter.crowded
        self.frame_clock.expect_first_token(self._presenter.awaits_first_text)
        return more

    async def _follow_others(self) -> None:
        """Show what another process adds to the open conversation, and to the list."""
        if self.session.follow():
            self.frame_clock.wake()
        if self.session.follow_branches():
            await self.show_chat()
        if self.session.others_changed_list():
            self.refresh_list()

    def on_deferred(self) -> None:
        """Let the clock tick until it is drawn: the terminal may not answer."""
        self.frame_clock.wake()

    def _drawing_context(self) -> AbstractContextManager[None]:
        """The context of all drawing: under load, the engine yields one core to the screen.

        Otherwise drawing would preempt one of the engine's threads, for which all others would wait.
        """
        crowded = self._presenter is not None and self._presenter.crowded
        return self.client.yield_core() if crowded else nullcontext()

    def draw_all(self) -> None:
        """Draw everything at the next tick, and wake the clock."""
        self.pace.hurry()
        if self._presenter is not None:
            self._presenter.draw_all()
        self.frame_clock.wake()

    def go_in_time(self, seconds: float | None) -> bool:
        """Show the engine so many seconds later (negative: earlier); None shows the present.

        Returns:
            Whether that is another instant than before.
        """
        moved = self._presenter is not None and self._presenter.go_in_time(seconds)
        self.draw_all()
        return moved

    def _tick_failed(self, error: Exception) -> None:
        if not self.survive(error):
            self._handle_exception(error)

    def on_failure(self, error: BaseException) -> None:
        """Report an exception that the app survived."""
        where = f"details in {self._log_file}" if self._log_file else "the log has the details"
        self.notify_safely(f"This failed: {type(error).__name__}: {error}; {where}.", "error")

    async def show_chat(self) -> None:
        """Show the messages of the open path."""
        path = self.session.path()
        self.screen.set_class(not path, "-empty")
        await self.screen_stack[0].query_one(Transcript).load(path)
        self._tree.leave_lost_edit()
        self.refresh_list()
        self.draw_all()

    def _place_of(self, node_id: str) -> SiblingPlace:
        siblings = self.session.tree.siblings(node_id)
        return SiblingPlace(siblings.index(node_id) + 1, len(siblings))

    @property
    def glyphs(self) -> Glyphs:
        """The characters of this terminal."""
        return self._glyphs

    @property
    def tree_focused(self) -> bool:
        """Whether the branch tree has the focus."""
        return self.screen_stack[0].query_one(BranchPane).tree_view.has_focus

    @property
    def selected_node(self) -> str | None:
        """The node under the tree's cursor, or the selected card, if it has the focus; else the message."""
        main = self.screen_stack[0]
        tree, cards = main.query_one(BranchPane).tree_view, main.query_one(CardStrip)
        if tree.has_focus:
            return tree.cursor
        return cards.selected if cards.has_focus else main.query_one(Transcript).selected_id

    def refresh_list(self) -> None:
        """Reload the conversation list."""
        self.listing.refresh()

    def notify_safely(self, text: str, severity: Severity = "information") -> None:
        """Show a notification, with control sequences removed."""
        toast(self, text, severity)

    def watch_pane(self, old: str, new: str) -> None:
        """Set the classes by which the stylesheet shows the pane."""
        main = self.screen_stack[0]
        main.remove_class(f"-pane-{old}").add_class(f"-pane-{new}")
        main.set_class(new in PANES and PANES[new].place == "center", "-center-open")
        for pane in main.query(".center-pane"):
            pane.set_class(pane.id == new, "-open")
        self.draw_all()

    def watch_maximised(self, maximised: bool) -> None:
        """Set the screen's class."""
        self.screen.set_class(maximised, "-maximised")
        self.draw_all()

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
        # Of several resizes in a row only the last is handled. If its size is the one that was drawn, Textual
        # draws nothing, but the terminal has lost what did not fit meanwhile.
        self.action_repaint()
        self.draw_all()

    def _recorded(self) -> None:
        """A record was logged, on any thread."""
        if self.pane == "logs":
            self.frame_clock.wake()

    @on(NeedsDrawing)
    def _wake_clock(self) -> None:
        self.draw_all()

    def on_descendant_focus(self) -> None:
        """Redraw: the mode in the status bar depends on the focus. The list is over the chat only with it."""
        if not self.screen_stack:  # the app has ended meanwhile
            return
        main = self.screen_stack[0]
        if main.focused is not None and not main.query_one("#left").has_focus_within:
            main.remove_class("-list")
        self.draw_all()

    @property
    def _typing(self) -> bool:
        """Whether letters go into a text field of the main screen, also while a dialog is over it."""
        return isinstance(self.screen_stack[0].focused, TextArea | Input)

    def _hints(self) -> Sequence[KeyHint]:
        focused = self.screen_stack[0].focused
        selected = self.selected_node
        pane = focused_pane(focused, selected=selected is not None, empty=self.session.head is None)
        prices: dict[str, str] = {}
        if pane in PRICED:
            prices = self.fork_prices.texts(selected or self.session.head)
            if self.tokens.cursor is not None and not self.tree_focused:
                at_token = self.tokens.fork_price
                prices["fork"] = build_price(at_token) if at_token is not None else ""
        return build_hints_of(
            pane,
            self.keymap,
            generating=self.session.generating,
            in_past=self._presenter is not None and self._presenter.in_past,
            marked=len(self.marks),
            waiting=self.agents.num_waiting,
            running=self.agents.num_active,
            indexing=self.sources.job_hint,
            prices=prices,
        )

    @on(TokenView.Pointed)
    async def _pointed_at_token(self, event: TokenView.Pointed) -> None:
        await self.tokens.point(event.node_id, event.unit)

    # -- conversations -------------------------------------------------------------------------

    @on(Prompt.Submitted)
    async def _submitted(self, event: Prompt.Submitted) -> None:
        if event.editing is not None:
            await self._tree.finish_edit(event.editing, event.text)
            return
        match parse.read(event.text, "screen"):
            case parse.Plain(text):
                await self.send(text)
            case parse.Invocation() as invocation:
                await self.slash.run(invocation)
            case parse.Refused(sentence):
                self.notify_safely(sentence, "warning")
                self.query_one(Prompt).insert_unsent(event.text)

    async def send(self, text: str) -> None:
        """Send a message; if it is refused, its text returns to the prompt."""
        try:
            if await self.agents.takes(text) or await self.sources.takes(text):
                return
            pictures = self.pictures.named(text)
            if self.pictures.takes(text, pictures):
                return  # it is sent when they are read
        except PravahaError as error:
            await self._return_unsent(text, error)
            return
        await self.send_read(text, text, images=[one.image for one in pictures])

    async def send_read(self, text: str, message: str, *, images: Sequence[Image] = ()) -> None:
        """Send a message whose pictures were read; if it is refused, its text returns to the prompt.

        Args:
            text: as it was typed.
            message: what is sent, together with the files that it names.
            images: the pictures that the model sees.
        """
        sent = message
        try:
            sent = self.files.expanded(message)
            self.session.send(sent, images=images)
        except ContextFull:
            self.context.ask(sent, images)
            return
        except PravahaError as error:
            await self._return_unsent(text, error)
            return
        await self.show_sent()

    async def _return_unsent(self, text: str, error: PravahaError) -> None:
        self.notify_safely(str(error), "error")
        self.query_one(Prompt).insert_unsent(text)
        if isinstance(error, ConversationChanged):
            await self.show_chat()

    async def show_sent(self) -> None:
        """Show the message that was sent and follow its answer."""
        self._drafts.leave()
        self.query_one(Prompt).set_history(self.session.prompt_history())
        if self.pane in PANES and PANES[self.pane].place == "center" and not self.maximised:
            self.pane = CHAT
        await self.show_chat()
        await self.query_one(Transcript).select("end")

    async def open_chat(self, tree_id: str) -> None:
        """Open another conversation."""
        self._drafts.leave()
        try:
            self.session.open_tree(tree_id)
        except PravahaError as error:
            self.notify_safely(str(error), "error")
            return
        self.query_one(Prompt).show_draft(self._drafts.enter())
        self.pane, self.maximised = CHAT, False
        self.screen.remove_class("-list")
        await self.show_chat()
        self.query_one(Prompt).focus()

    @on(Conversations.Chosen)
    async def _chosen(self, event: Conversations.Chosen) -> None:
        await self.open_chat(event.tree_id)

    @on(Conversations.Filtered)
    def _filtered(self) -> None:
        self.refresh_list()

    @on(ConversationOptions.DeleteAsked)
    def _delete_asked(self, event: ConversationOptions.DeleteAsked) -> None:
        archived = self.query_one(Conversations).archived
        (self.archive.ask_erase if archived else self.ask_delete)(event.tree_id)

    def ask_delete(self, tree_id: str) -> None:
        """Archive a conversation after confirmation; it is kept in the database."""

        async def answered(yes: bool | None) -> None:
            if yes:
                self._drafts.leave()
                self.session.delete_tree(tree_id)
                self.query_one(Prompt).show_draft(self._drafts.enter())
                await self.show_chat()

        self.open_dialog(ConfirmScreen("Archive this conversation?"), answered)

    def show_left_column(self) -> None:
        """Show the conversations and branches, over the messages if there is no room beside them."""
        self.screen_stack[0].add_class("-list").remove_class("-hide-list")
        self.maximised = False

    def close_overlay(self) -> bool:
        """Hide the left column if it is over the messages; whether it was."""
        main = self.screen_stack[0]
        was_over = main.has_class("-list") and not self._wide_enough_for_list
        main.remove_class("-list")
        return was_over

    def show_list(self, query: str = "") -> None:
        """Show and focus the conversation list, filtered by `query`."""
        self.show_left_column()
        chats = self.query_one(Conversations)
        if query:
            self.query_one("#chat-filter", Input).value = query
        self.call_after_refresh(chats.options.focus)

    @on(AskCount.Answered)
    async def _count_answered(self, event: AskCount.Answered) -> None:
        await self.compare.answer_count(event.count)

    # -- completions ---------------------------------------------------------------------------

    @on(TextArea.Changed, "#prompt")
    def _show_completions(self, event: TextArea.Changed) -> None:
        lines: Sequence[Line] = ()
        self.pictures.text_changed(event.text_area.text)
        if self.query_one(Prompt).editing is None:  # an edited message is no draft and no command
            self._drafts.changed(event.text_area.text)
            text = event.text_area.text
            names = self.sources.names if "@" in text else ()
            lines = slash.build_completions(text, names)
        completions = self.query_one("#completions", Lines)
        completions.display = bool(lines)
        completions.show_lines(lines)

    # -- actions -------------------------------------------------------------------------------

    def disabled_reasons(self) -> dict[str, str]:
        """Action id → the reason why it is not available now."""
        session, selected = self.session, self.selected_node
        return disabled_reasons(
            empty=session.head is None,
            answered=any(node.kind is NodeKind.ASSISTANT for node in session.path()),
            running=(selected or session.head) in session.running,
            stoppable=session.generating or selected in session.running,
            token_cursor=self.tokens.cursor is not None,
        )

    @takes_all_arguments
    async def action_perform(self, group: str, name: str, *arguments: str | int) -> None:
        """Call a method of a group of actions; shows an error that it raises as a notification."""
        method = getattr(self._actions[group], name)

        async def call() -> None:
            done = method(*arguments)
            if inspect.isawaitable(done):
                await done

        await self.guarded(call())

    @takes_all_arguments
    def action_perform_later(self, group: str, name: str, *arguments: str | int) -> None:
        """As `perform`, for a click on a message, which the action may remove.

        The message would handle its click and wait for its own removal.
        """
        self.call_later(self.action_perform, group, name, *arguments)

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

    @on(ApprovalsPane.Opened)
    def _approval_opened(self, event: ApprovalsPane.Opened) -> None:
        self.agents.open_approval(event.request)

    @on(BranchTreeView.Opened)
    async def _branch_opened(self) -> None:
        await self.action_perform("go", "enter")

    async def guarded(self, action: Awaitable[None]) -> None:
        """Wait for an action; shows an error that it raises as a notification."""
        try:
            await action
        except PravahaError as error:
            self.notify_safely(str(error), "warning")
            if isinstance(error, ConversationChanged):
                await self.show_chat()

    def action_help(self) -> None:
        """Show all keys and commands."""
        first = GROUPS[focused_pane(self.focused)]
        self.open_dialog(HelpScreen(self.keymap, self.disabled_reasons(), first))

    def action_copy_or_stop(self) -> None:
        """Ctrl+C: copy a selection, else stop the answer, else quit on the second press in 2 s."""
        selected = self.screen.get_selected_text()
        if isinstance(self.focused, TextArea) and self.focused.selected_text:
            selected = self.focused.selected_text
        if selected:
            self.copy_text(selected)
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
        chats = self.query_one(Conversations)
        overlay = self.screen.has_class("-list") and not self._wide_enough_for_list
        transcript = self.query_one(Transcript)
        prompt, tree = self.query_one(Prompt), self.query_one(BranchPane).tree_view
        asked = self._tree.drop_question()
        state = EscapeState(
            popup=(overlay and not chats.narrowed) or tree.has_focus,
            in_past=self._presenter is not None and self._presenter.in_past,
            maximised=self.maximised or self.pane != CHAT,
            selection=asked
            or transcript.selected is not None
            or len(self.marks) > 0
            or bool(self.screen.get_selected_text())
            or chats.narrowed,
            editing=prompt.editing is not None,
            reading=self.pictures.reading,
            queued=bool(self.session.queued),
            generating=self.session.generating,
            prompting=self._typing,
        )
        match escape_effect(state):
            case EscapeEffect.CLOSE_POPUP:
                if tree.has_focus:
                    self._go.close_tree()
                else:
                    self.screen.remove_class("-list")
                    prompt.focus()
            case EscapeEffect.RETURN_TO_NOW:
                self.go_in_time(None)
            case EscapeEffect.RESTORE_PANE:
                self.restore_chat()
            case EscapeEffect.DROP_SELECTION if chats.narrowed:
                chats.widen()
            case EscapeEffect.DROP_SELECTION:
                if not self.tokens.drop():
                    transcript.clear_selection()
                    self.screen.clear_selection()
                    self.marks.clear()
            case EscapeEffect.LEAVE_EDIT:
                self._tree.leave_edit()
            case EscapeEffect.KEEP_UNSENT:
                self.pictures.cancel()
            case EscapeEffect.WITHDRAW_QUEUED:
                withdrawn = self.session.withdraw()
                if withdrawn is not None:
                    self.query_one(Prompt).insert_unsent(withdrawn)
                self.frame_clock.wake()
            case EscapeEffect.STOP:
                self.action_stop()
            case EscapeEffect.NAVIGATE:
                self.action_navigate()
                self._escaped_at = float("-inf") if prompt.text else self._clock()
            case EscapeEffect.NOTHING:
                if self._clock() - self._escaped_at <= _DOUBLE_ESC_S:
                    self._go.open_tree_at_last_question()
                self._escaped_at = float("-inf")

    @property
    def attached(self) -> bool:
        """Whether the engine is that of a server."""
        return self._server is not None

    def _rows_below(self, node: NodeView) -> list[Line]:
        """The rows below a message that has finished: its pictures, passages and citations."""
        return [*self.pictures.rows_below(node), *self.sources.rows_below(node)]

    @property
    def _wide_enough_for_list(self) -> bool:
        return self.screen.has_class("-medium") or self.screen.has_class("-wide")

    async def action_new_chat(self) -> None:
        """Open an empty conversation; a running answer continues in the background."""
        self._drafts.leave()
        self.session.new_tree()
        self.query_one(Prompt).show_draft(self._drafts.enter())
        self.pane, self.maximised = CHAT, False
        await self.show_chat()
        self.query_one(Prompt).focus()

    def action_theme(self) -> None:
        """Open the theme list with live preview."""

        def chosen(name: str | None) -> None:
            if name is not None:
                self._on_theme(name)

        self.open_dialog(ThemePicker(self.theme_files, self.theme), chosen)

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

    async def action_quit(self) -> None:
        """Quit; the conversation is saved. Asks first if it cannot be."""
        reason = self.session.unsaved
        if reason is None:
            self.exit()
        else:
            confirm = ConfirmScreen("Quit and lose the last messages?", f"Not saved: {reason}.")
            self.open_dialog(confirm, lambda yes: self.exit() if yes else None)

    def action_pane(self, name: str) -> None:
        """Show and focus a pane; a second call maximises it, a third restores the chat."""
        if name == CHAT:
            self.pane, self.maximised = CHAT, False
            self.query_one(Prompt).focus()
            return
        if self.pane == name and self.maximised:
            self.restore_chat()
            return
        if self.pane == CHAT:
            self._typed_before = self._typing
        beside = PANES[name].place == "center" or self.screen.has_class("-wide")
        self.maximised = self.pane == name or not beside
        self.pane = name
        self.call_after_refresh(lambda: self.query_one(PANES[name].focus).focus())

    def restore_chat(self) -> None:
        """Show the chat in place of a pane, in the keyboard mode in which the pane was opened."""
        self.action_pane(CHAT)
        if not self._typed_before:
            self.action_navigate()

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
        if self.session.head is None:
            self.notify_safely(EMPTY, "warning")
        await self.query_one(Transcript).select(where)
        self.draw_all()  # the token cursor is on the selected message only

    def action_stop(self) -> None:
        """Stop the answer at the engine's next step; its text is kept."""
        self.session.stop()
        self.draw_all()

    def write_sequence(self, sequence: str) -> None:
        """Write a control sequence that draws nothing to the terminal."""
        if self._driver is not None:
            self._driver.write(sequence)

    def report_mouse(self, on: bool) -> None:
        """Use the mouse, or leave it to the terminal's own selection of text.

        Raises:
            InvalidRequest: not on this terminal.
        """
        if not isinstance(self._driver, MouseDriver):
            raise InvalidRequest("The mouse cannot be switched on this terminal.")
        self._driver.report_mouse(on)

    def copy_text(self, text: str) -> None:
        """Copy a text to the clipboard and say which way it took."""
        name = clipboard.copy(text, clipboard.choose_path(os.environ), self.copy_to_clipboard)
        self.notify_safely(f"{len(text)} characters copied with {name}.")

    def action_command_palette(self) -> None:
        """Open the command palette."""
        self.open_dialog(Palette(id="--command-palette"))

    def action_repaint(self) -> None:
        """Draw the whole screen again, whatever another program has written over it."""
        self.screen.refresh()

    def open_dialog(
        self, dialog: Screen[T], answered: ScreenResultCallbackType[T] | None = None
    ) -> None:
        """Open a dialog over the screen; no effect if one of its kind is open already."""
        if not any(type(screen) is type(dialog) for screen in self.screen_stack):
            self.push_screen(dialog, answered)
