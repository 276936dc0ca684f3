"""`MainView`: the widgets of the main screen, and the panes that each frame draws."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from agents.service.run_service import RunService
from app.text.log_ring import LogRing
from app.tui.action_groups import ActionGroups
from app.tui.avatar.figure import Figure
from app.tui.completer import Completer
from app.tui.fork_costs import ForkCosts
from app.tui.fork_prices import ForkPrices
from app.tui.frame import Pane
from app.tui.glyphs import Glyphs
from app.tui.marks import Marks
from app.tui.output.finish_notice import FinishNotice
from app.tui.view.messages import sibling_place
from app.tui.view.session_lines import SessionFigures
from app.tui.widgets.agents_pane import AgentsPane
from app.tui.widgets.approvals_pane import ApprovalsPane
from app.tui.widgets.attached_row import AttachedRow
from app.tui.widgets.avatar import Avatar
from app.tui.widgets.branches import BranchPane
from app.tui.widgets.cards import AskCount, CardStrip
from app.tui.widgets.compare import ComparePane
from app.tui.widgets.completions import Completions
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.crumbs import Crumbs
from app.tui.widgets.header import Header
from app.tui.widgets.kv_pane import KvPane
from app.tui.widgets.lines import Lines
from app.tui.widgets.loading import FirstKeys, LoadingView
from app.tui.widgets.log_pane import LogPane
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.queued import Queued
from app.tui.widgets.scheduler import SchedulerPane
from app.tui.widgets.sources_pane import SourcesPane
from app.tui.widgets.stats import StatsPane
from app.tui.widgets.status_bar import StatusBar
from app.tui.widgets.transcript import Transcript
from app.tui.widgets.vitals import Vitals
from engine.conversations.session import TreeSession

P = TypeVar("P", bound=Widget)


class MainView:
    """Composed once.

    Args:
        actions: what some panes read, and the panes without a widget among them.
        completer: completes the text of the prompt.
        figure: the avatar's.
        figure_shown: whether there is an avatar.
        animate: whether it moves.
        sessions: returns what the prompts of the last conversations have cost.
        first_start: whether to show the hint for someone who has not used the screen before.
        colored: whether the terminal shows colours.

    Attributes:
        avatars: of the welcome and of the header.
        panes: are drawn from every frame, in this order.
    """

    def __init__(
        self,
        session: TreeSession,
        actions: ActionGroups,
        completer: Completer,
        *,
        figure: Figure,
        figure_shown: bool,
        animate: bool,
        glyphs: Glyphs,
        marks: Marks,
        fork_prices: ForkPrices,
        fork_costs: ForkCosts,
        notice: FinishNotice,
        run_service: RunService | None,
        log_ring: LogRing,
        sessions: Callable[[], Sequence[SessionFigures]],
        keymap: Mapping[str, str],
        first_start: bool,
        colored: bool,
        wall_clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._actions = actions
        self._completer = completer
        self.avatars = tuple(
            Avatar(figure, glyphs, animate=animate, colored=colored) for _ in range(2)
        )
        for avatar in self.avatars:
            avatar.display = figure_shown
        self._glyphs = glyphs
        self._marks = marks
        self._fork_prices = fork_prices
        self._fork_costs = fork_costs
        self._notice = notice
        self._run_service = run_service
        self._log_ring = log_ring
        self._sessions = sessions
        self._first_keys = FirstKeys.of(keymap) if first_start else None
        self._colored = colored
        self._wall_clock = wall_clock
        self.panes: list[Pane] = [
            actions.models,
            actions.hub,
            actions.fork_at_token,
            actions.tokens,
            actions.kv,
        ]

    def compose(self) -> ComposeResult:
        """Header, three columns, status bar."""
        glyphs, actions = self._glyphs, self._actions
        welcome, header = self.avatars
        yield self._joined(Header(header, glyphs, id="header"))
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Conversations(glyphs, wall_clock=self._wall_clock, id="chats")
                yield self._joined(
                    BranchPane(self._session, self._fork_prices, self._marks, glyphs, id="branches")
                )
            with Vertical(id="center"):
                yield self._joined(Crumbs(glyphs, id="crumbs"))
                yield self._joined(
                    LoadingView(welcome, glyphs, first=self._first_keys, id="welcome")
                )
                yield Transcript(
                    glyphs,
                    place_of=lambda node: sibling_place(self._session.tree.siblings(node), node),
                    rows_below=lambda node: [
                        *actions.images.rows_below(node),
                        *actions.sources.rows_below(node),
                        *actions.edits.rows_below(node),
                    ],
                    folded=actions.documents.folded,
                    thought=actions.thoughts.row,
                    id="transcript",
                )
                yield from self._center_panes()
                yield Lines(id="token-bar")
                yield ComparePane(glyphs, id="compare", classes="center-pane")
                yield CardStrip(glyphs, self._marks, id="cards")
                yield self._joined(Queued(glyphs, id="queued"))
                yield AskCount(glyphs, id="ask-count")
                yield Completions(id="completions")
                yield self._joined(AttachedRow(lambda: actions.draft.files, id="attached"))
                yield Prompt(
                    complete=self._completer.complete,
                    reading=lambda: self._completer.reading,
                    id="prompt",
                )
            with Vertical(id="side"):
                yield self._joined(KvPane(glyphs, colored=self._colored, id="kv"))
                yield self._joined(Vitals(header, glyphs, id="vitals"))
        yield self._joined(StatusBar(glyphs, id="status"))
        self.panes.extend(
            (
                self._notice,
                *self.avatars,
                actions.context,
                self._fork_costs,
                actions.agents,
                actions.tools,
                self._completer,
                actions.draft,
            )
        )

    def _center_panes(self) -> ComposeResult:
        """The panes that are opened in place of the messages."""
        glyphs = self._glyphs
        for pane in (
            SourcesPane(self._actions.sources, glyphs, id="sources"),
            StatsPane(glyphs, self._sessions, id="stats"),
            SchedulerPane(glyphs, id="scheduler"),
            LogPane(self._log_ring, id="logs"),
            AgentsPane(self._run_service, glyphs, wall_clock=self._wall_clock, id="agents"),
            ApprovalsPane(self._run_service, glyphs, wall_clock=self._wall_clock, id="approvals"),
        ):
            pane.add_class("center-pane")
            yield self._joined(pane)

    def _joined(self, pane: P) -> P:
        """Draw this pane from every frame."""
        self.panes.append(cast("Pane", pane))
        return pane
