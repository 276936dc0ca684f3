"""Agents on the screen: start a run, answer approvals, take results into the conversation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.reports.candidates import (
    WidthReport,
    candidate_markdown,
    decision_markdown,
    read_widths,
)
from agents.reports.markdown import markdown_of
from agents.runs.approvals import ApprovalRequest
from agents.service.run_request import RunRequest
from agents.service.run_service import RunService
from app.slash.agents import AgentCall, read_call
from app.slash.names import meant
from app.tui.actions.listing import ListActions
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.screen_layout import ScreenLayout
from app.tui.widgets.agents_pane import AgentsPane
from app.tui.widgets.approval import Answer, ApprovalScreen
from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.tree import Verdict

_LISTS = "`pravaha agents list` and `pravaha pipelines list` show all."


@dataclass(frozen=True, slots=True)
class _Asked:
    """A run that was started from a conversation, which gets its result.

    Attributes:
        place: the node that waits for the result; None while an answer runs where it would stand.
    """

    tree: str
    text: str
    name: str
    place: str | None = None


class AgentActions:
    """Also a pane: each frame it looks whether a run that was asked for has finished.

    Args:
        service: runs the agents; None in a replay.
    """

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        listing: ListActions,
        service: RunService | None,
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._listing = listing
        self._service = service
        self._asked: dict[str, _Asked] = {}
        self._catalogue: dict[str, dict[str, Any]] = {}
        self._announced: set[str] = set()
        if service is not None:
            service.on_change(screen.wake)

    # Pane.

    @property
    def in_view(self) -> bool:
        """Whether there is something to look for."""
        return self._service is not None

    def show(self, frame: Frame) -> bool:
        """Take finished results into their conversation, and announce approvals once."""
        if self._service is None:
            return False
        pending = self._service.approvals()
        self._close_answered({one.id for one in pending})
        for approval in pending:
            if approval.id not in self._announced:
                self._announced.add(approval.id)
                self._screen.notify_safely(
                    f"{approval.agent} waits for your approval to call {approval.tool}: f8 shows it.",
                    "warning",
                )
        for run, asked in tuple(self._asked.items()):
            if asked.place is None and self._can_begin(asked):
                self._begin(run, asked)
                self._screen.run_worker(self._screen.show_chat(), group="agents")
                continue  # the result is added when its place is drawn
            result = self._service.result(run)
            if result is not None and asked.place is not None:
                del self._asked[run]
                widths = read_widths(self._service.events(run, 0))
                self._screen.run_worker(
                    self._add(asked, asked.place, result, widths), group="agents"
                )
        return False

    def _close_answered(self, pending: set[str]) -> None:
        """Close the dialog of a call that somebody else has answered, or whose time is over."""
        dialog = self._screen.dialog
        if isinstance(dialog, ApprovalScreen) and dialog.request.id not in pending:
            dialog.dismiss(None)
            self._screen.notify_safely("The call was answered elsewhere, or it waits no longer.")

    @property
    def num_waiting(self) -> int:
        """Calls that wait for an approval."""
        return 0 if self._service is None else len(self._service.approvals())

    @property
    def num_active(self) -> int:
        """Runs that have not finished."""
        views = () if self._service is None else self._service.runs()
        return sum(not view.state.finished for view in views)

    # Starting.

    async def run(self, argument: str) -> None:
        """`/agents [NAME [PATH…] [: TASK]]`: start a run, or show the pane.

        Raises:
            InvalidRequest: there is no such agent or pipeline, or no agents at all.
        """
        if not argument:
            self._layout.open_pane("agents")
            return
        await self._known()
        word = argument.split()[0].rstrip(":")
        name = meant(word, self._catalogue, "agent or pipeline", _LISTS)
        argument = name + argument[len(word) :]
        call = read_call(argument, self._catalogue)
        if call is not None:
            await self._start(call, f"@{argument}")

    async def start_if_called(self, text: str) -> bool:
        """Whether a message calls an agent, as `@key PATH… : task`; it is then started."""
        if self._service is None or not text.startswith("@") or text.startswith("@/"):
            return False
        try:
            await self._known()
        except PravahaError:
            return False
        call = read_call(text[1:], self._catalogue)
        if call is None:
            return False
        await self._start(call, text)
        return True

    async def names(self) -> tuple[str, ...]:
        """The agents and pipelines; none if they cannot be listed."""
        if self._service is None:
            return ()
        try:
            await self._known()
        except PravahaError:
            return ()
        return tuple(self._catalogue)

    async def _known(self) -> None:
        """Read the catalogue once."""
        if not self._catalogue:
            service = self._required()
            listed = await asyncio.to_thread(service.catalogue)
            self._catalogue = {one["name"]: one for one in listed}

    async def _start(self, call: AgentCall, text: str) -> None:
        kind = self._catalogue[call.name]["kind"]
        conversation = self._screen.session.tree_id
        request = RunRequest(
            kind, call.name, call.paths, call.task, call.task, conversation=conversation
        )
        run = await asyncio.to_thread(self._required().start, request)
        asked = self._asked[run] = _Asked(conversation, text, call.name)
        if self._can_begin(asked):
            self._begin(run, asked)
            await self._screen.show_chat()
        self._screen.notify_safely(f"{call.name} is running; f4 shows it. Its result comes here.")
        self._screen.draw_all()

    def _required(self) -> RunService:
        if self._service is None:
            raise InvalidRequest("A replay runs no agents.")
        return self._service

    # Results.

    def _can_begin(self, asked: _Asked) -> bool:
        session = self._screen.session
        return session.tree_id == asked.tree and not session.answers.running

    def _begin(self, run: str, asked: _Asked) -> None:
        """Add the message that started a run, and the place of its result."""
        try:
            place = self._screen.session.messages.begin_exchange(asked.text, by=asked.name)
        except PravahaError as error:
            self._asked.pop(run)
            self._not_added(asked, error)
            return
        self._asked[run] = replace(asked, place=place)

    async def _add(
        self, asked: _Asked, place: str, result: dict[str, Any], widths: Sequence[WidthReport]
    ) -> None:
        """Add a result. Where candidates of code were written, the others are branches beside it."""
        session = self._screen.session
        text = markdown_of(asked.name, result)
        verdict: Verdict | None = None
        others: list[tuple[str, Verdict | None]] = []
        for report in widths[-1:]:
            told = decision_markdown(report, text)
            text = f"{text}\n\n{told}" if told else text
            if report.chosen is not None:
                verdict = Verdict.PASSED if report.verified else None
            elif report.finished and report.candidates:
                verdict = Verdict.FAILED
            others = [
                (
                    candidate_markdown(report, one),
                    Verdict.FAILED if report.failed_check(one) else None,
                )
                for one in report.candidates
                if one.number != report.chosen and one.same_as is None
            ]
        try:
            session.messages.finish_exchange(place, text, verdict=verdict, others=others)
        except PravahaError as error:
            self._not_added(asked, error)
        if session.tree_id == asked.tree:
            await self._screen.main.query_one(Transcript).finish_awaited(session.path())
            await self._screen.show_chat()
        self._listing.refresh()

    def _not_added(self, asked: _Asked, error: PravahaError) -> None:
        self._screen.notify_safely(f"The result of {asked.name} was not added: {error}", "warning")

    # Approvals and stopping.

    def approve(self) -> None:
        """Open the oldest call that waits.

        Raises:
            InvalidRequest: none waits.
        """
        pending = self._required().approvals()
        if not pending:
            raise InvalidRequest("No agent waits for an approval.")
        self.open_approval(pending[0])

    def open_approval(self, request: ApprovalRequest) -> None:
        """Ask about one call."""

        async def answered(answer: Answer | None) -> None:
            if answer is None:
                return
            decide = self._required().decide
            taken = await asyncio.to_thread(
                decide, request.id, answer.decision, reason=answer.reason
            )
            if not taken:
                self._screen.notify_safely("It was answered already, or the run has ended.")
            if self._layout.pane == "approvals" and not self._required().approvals():
                self._layout.restore_chat()  # nothing else is to be done there
            self._screen.draw_all()

        self._screen.open_dialog(ApprovalScreen(request), answered)

    def stop(self) -> None:
        """Stop the run under the cursor, after a question.

        Raises:
            InvalidRequest: no run is selected, or it has finished.
        """
        service = self._required()
        run = self._screen.main.query_one(AgentsPane).selected_run
        view = next((one for one in service.runs() if one.id == run), None)
        if view is None:
            raise InvalidRequest("No run is selected.")
        if view.state.finished:
            raise InvalidRequest(f"{view.name} has finished.")
        self._ask_to_stop(f"Stop {view.name}?", [view.id])

    def stop_all(self) -> None:
        """Stop all runs, after a question.

        Raises:
            InvalidRequest: none is active.
        """
        service = self._required()
        active = [view.id for view in service.runs() if not view.state.finished]
        if not active:
            raise InvalidRequest("No run is active.")

        what = "the run" if len(active) == 1 else f"all {len(active)} runs"
        self._ask_to_stop(f"Stop {what}?", active)

    def _ask_to_stop(self, question: str, runs: list[str]) -> None:
        async def answered(yes: bool | None) -> None:
            for run in runs if yes else ():
                self._required().cancel(run)

        self._screen.open_dialog(ConfirmScreen(question, "What was found is kept."), answered)
