"""`AcpSession`: one conversation of an editor: its folder, its tools, and the turn that runs.

A turn is a prompt and everything until its answer is complete: the model's rounds with calls of tools
(`answer_turn`, `model_calls`), or an agent's run (`agent_turn`). Approvals are asked beside it (`asking`),
and everything is told in its order (`updates`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from acp.exceptions import RequestError
from acp.helpers import (
    update_agent_message_text,
    update_agent_thought_text,
)
from acp.schema import (
    PromptResponse,
    SessionInfoUpdate,
    StopReason,
    UsageUpdate,
)

from agents.api.agent_spec import PermissionMode
from agents.mcp.server import McpServer
from agents.reports.markdown import markdown_of
from agents.service.run_request import REPAIR, RunRequest
from agents.tool_loop.values import LoopEvent
from app.acp.agent_turn import AgentTurn, allows, offer_changes
from app.acp.answer_turn import AnswerTurn
from app.acp.asking import Asking
from app.acp.commands import ChatCall, paths_of, read_command
from app.acp.editor import Editor
from app.acp.editor_files import ANSWER_S, EditorFiles
from app.acp.host import Host, OpeningHost
from app.acp.loading import show_waiting, wait_for_model
from app.acp.model_calls import ModelCalls
from app.acp.prompt_content import Prompt, read_prompt
from app.acp.replay import history_updates
from app.acp.requests import INVALID_REQUEST
from app.acp.session_folders import SessionFolders
from app.acp.session_tools import SessionTools
from app.acp.tool_updates import steps_plan
from app.acp.updates import Updates
from app.runtime.chat_tools import ChatTools
from app.slash.agents import AgentCall
from app.slash.attachments import check_all_fit
from app.slash.images import read_images
from app.slash.token_count import count_tokens
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.image import Image
from engine.conversations.errors import ContextFull
from engine.conversations.session import TreeSession
from engine.conversations.shortening import send_shortened
from engine.conversations.ulid import new_ulid
from engine.retrieval.parsing.document_reader import DocumentReader

_LOOK_S = 0.5
"""Most seconds between two looks at what runs, in case a wake-up is missed."""
Catalogue = Callable[[], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""Awaits the agents, pipelines and the repair by name."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a session has once it is open."""

    host: Host
    conversations: TreeSession
    tools: SessionTools


class _Cancelled(Exception):
    """The client has cancelled the turn."""


@dataclass(slots=True)
class _Turn:
    """A prompt that is being answered.

    Attributes:
        cancelled: whether the client has asked to stop.
        asking: asks about its calls; None before the session is open.
        calls: shows the model's calls.
        answer: the model's answer; None before its message is sent.
    """

    cancelled: bool = False
    asking: Asking | None = None
    calls: ModelCalls | None = None
    answer: AnswerTurn | None = None


class AcpSession:
    """One session. Use from one event loop.

    Attributes:
        id: of the session, which is that of its conversation.
        folder: where its tools act.
        notes: what the person should know before the next answer.
    """

    def __init__(
        self,
        session_id: str,
        folder: Path,
        opening: OpeningHost,
        editor: Editor,
        documents: DocumentReader,
        *,
        mode: PermissionMode = "ask",
        mcp: tuple[McpServer, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Nothing is opened before `open`.

        Args:
            session_id: of its conversation.
            folder: where its tools act.
            opening: the engine and the agents, when they are there.
            editor: the client.
            documents: reads files of messages.
            mode: of calls with side effects.
            mcp: further MCP servers.
            notes: what the person should know before the next answer.
        """
        self.id = session_id
        self.folder = folder
        self.notes = list(notes)
        self._mode: PermissionMode = mode
        self._opening = opening
        self._editor = editor
        self._documents = documents
        self._mcp = mcp
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._resources = ExitStack()
        self._opened: _Opened | None = None
        self._files = EditorFiles(editor, session_id, self._loop)
        self._turn: _Turn | None = None
        self._refused: Prompt | None = None
        self._title = ""
        self._counter = 0
        self._model_names: tuple[str, ...] = ()
        self._updates = Updates(editor, session_id)
        self._opening_lock = asyncio.Lock()
        self._closed = False

    # Opening and closing.

    async def open(self, tree_id: str | None = None) -> TreeSession:
        """The session's conversations, with its own one open.

        Args:
            tree_id: the saved conversation to open; None begins an empty one.

        Raises:
            PravahaError: there is no such conversation, or nothing can be opened.
        """
        async with self._opening_lock:
            if self._opened is not None:
                return self._opened.conversations
            host = await asyncio.shield(asyncio.wrap_future(self._opening.opened))
            if self._closed:
                raise InvalidRequest("The session is closed.")
            with ExitStack() as stack:
                tools = ChatTools(
                    host.service,
                    self.folder,
                    files=self._files,
                    mcp=host.mcp_with(self._mcp) if host.mcp_with and self._mcp else None,
                )
                stack.callback(tools.close)
                first = self.id if tree_id is None else new_ulid()
                conversations = stack.enter_context(host.open_conversations(tools, first))
                if tree_id is not None:
                    conversations.conversations.open(tree_id)
                tools.wake = self.wake_from_thread
                tools.report = self._loop_event_from_thread
                self._resources.push(stack.pop_all())
            if self._mcp and host.mcp_with is None:
                self.notes.append("MCP servers of the editor are not used with --attach.")
            servers = () if host.mcp_with is None else tuple(one.name for one in self._mcp)
            offered = SessionTools(tools, host.tools, servers)
            self._opened = _Opened(host, conversations, offered)
            self._title = conversations.title
            if host.models is not None:
                with suppress(PravahaError):
                    listed = await asyncio.to_thread(host.models.models)
                    self._model_names = tuple(one.name for one in listed)
            return conversations

    async def close(self) -> None:
        """Stop the turn, save what was said, and give everything back. Idempotent."""
        self._closed = True
        self.cancel()
        self._updates.close()
        with suppress(PravahaError):
            self._resources.close()

    # Modes.

    @property
    def mode(self) -> PermissionMode:
        """What happens to calls with side effects."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        if mode not in get_args(PermissionMode):
            raise InvalidRequest(f"There is no mode {mode!r:.40}: there are auto, ask and deny.")
        self._mode = mode  # type: ignore[assignment]

    @property
    def models(self) -> tuple[tuple[str, ...], str | None]:
        """The models to choose from and the chosen one; none before they are known, or if there is one."""
        opened = self._opened
        if opened is None or opened.host.models is None:
            return (), None
        return self._model_names, opened.conversations.model.current

    def choose_model(self, name: str) -> None:
        """Answer with this model from the next prompt on.

        Raises:
            PravahaError: there is no such model.
        """
        if self._opened is None:
            raise InvalidRequest("The models are not known yet.")
        self._opened.conversations.model.choose(name)

    # Turns.

    @property
    def busy(self) -> bool:
        """Whether a prompt is being answered."""
        return self._turn is not None

    async def prompt(self, blocks: list[Any], catalogue: Catalogue) -> PromptResponse:
        """Answer a prompt; returns when everything was sent.

        Args:
            blocks: its content.
            catalogue: awaits the agents by name.

        Raises:
            RequestError: another one is being answered.
            PravahaError: it cannot be answered.
        """
        if self._turn is not None:
            raise RequestError(
                INVALID_REQUEST,
                "This session is answering a prompt: wait for the answer, or cancel it.",
            )
        turn = self._turn = _Turn()
        try:
            reason = await self._answer(turn, blocks, catalogue)
        except _Cancelled:
            reason = "cancelled"
        finally:
            if turn.asking is not None:
                turn.asking.end()
            if turn.calls is not None:
                turn.calls.end()
            self._turn = None
        await self._tell_figures()
        await self._updates.sent()
        usage = None if turn.answer is None else turn.answer.usage()
        return PromptResponse(stop_reason=reason, usage=usage)

    def cancel(self) -> None:
        """Stop the turn: the answer, calls with their processes, agents, and questions."""
        turn = self._turn
        if turn is None:
            return
        turn.cancelled = True
        if self._opened is not None:
            answers = self._opened.conversations.answers
            for node in answers.running:
                answers.stop(node)
        if turn.asking is not None:
            turn.asking.end()
        self._wake.set()

    def wake_from_thread(self) -> None:
        """Look at what has changed. From any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    async def replay(self) -> None:
        """Tell the client what was said in the conversation."""
        conversations = await self.open()
        for update in history_updates(conversations.path(), self.folder):
            self._updates.tell(update)
        await self._tell_figures()
        await self._updates.sent()

    async def _answer(self, turn: _Turn, blocks: list[Any], catalogue: Catalogue) -> StopReason:
        prompt = await read_prompt(blocks, self.folder, self._documents, self._editor_text)
        if not (prompt.text.strip() or prompt.images):
            raise InvalidRequest("The message is empty.")
        conversations = await self._ready(turn)
        self._stop_if_cancelled(turn)
        agents = await catalogue()
        self._stop_if_cancelled(turn)
        for note in self.notes:
            self._updates.tell(update_agent_thought_text(f"{note}\n"))
        self.notes.clear()
        match read_command(prompt.typed, agents, self.folder):
            case ChatCall() as call:
                return await self._run_chat_command(turn, conversations, call)
            case AgentCall() as call:
                return await self._run_agent(turn, conversations, call, agents[call.name], prompt)
            case _:
                await self._wait_for_model(turn, conversations)
                return await self._chat(turn, conversations, prompt)

    # The model.

    async def _ready(self, turn: _Turn) -> TreeSession:
        """The conversations, once they are open; a client sees what is waited for."""
        if self._opened is None and not self._opening.opened.done():
            await show_waiting(
                self._updates,
                self._new_id("load"),
                lambda: self._opening.status,
                self._opening.opened.done,
                lambda: turn.cancelled,
            )
            self._stop_if_cancelled(turn)
        conversations, host = await self.open(), self._required.host
        turn.asking = Asking(
            host.service, self._editor, self._updates, self.id, self.folder, self._files
        )
        turn.calls = ModelCalls(self._updates, turn.asking, self.folder, self._files, self._new_id)
        return conversations

    async def _wait_for_model(self, turn: _Turn, conversations: TreeSession) -> None:
        """Wait until the model is loaded.

        Raises:
            PravahaError: it cannot be.
        """
        await wait_for_model(
            self._required.host,
            conversations.model.current,
            self._updates,
            self._new_id("load"),
            lambda: turn.cancelled,
        )
        self._stop_if_cancelled(turn)

    # Chat.

    async def _chat(self, turn: _Turn, conversations: TreeSession, prompt: Prompt) -> StopReason:
        await self._offer_tools()
        self._stop_if_cancelled(turn)
        host = self._required.host
        client, model = host.client, host.client.snapshot().model
        length = model.context_length if model else 0
        check_all_fit(
            prompt.files,
            lambda one: count_tokens(client, one),
            length,
            length - conversations.context.used(),
        )
        text = prompt.text
        images: tuple[Image, ...] = ()
        if prompt.images and model is not None:
            read = await asyncio.to_thread(
                read_images,
                text,
                prompt.images,
                model,
                host.image_reader,
                attached=host.attached,
                count=lambda one: len(client.tokenize(one)),
                length=length,
            )
            text, images = read.text, read.images
            self._stop_if_cancelled(turn)
        turn.answer = AnswerTurn(conversations, self._updates)
        try:
            conversations.messages.send(text, images=images)
        except ContextFull as error:
            self._refused = prompt
            raise InvalidRequest(
                "The message does not fit into the context with all earlier ones. /shorten drop leaves "
                "earlier messages out and sends it, /shorten summarise puts a summary in their place."
            ) from error
        self._refused = None
        return await self._follow_answer(turn)

    async def _offer_tools(self) -> None:
        problem = await self._required.tools.offer(self._mode)
        if problem:
            self._updates.tell(update_agent_thought_text(f"No tools: {problem}\n"))

    async def _follow_answer(self, turn: _Turn) -> StopReason:
        if turn.answer is None or turn.asking is None:
            raise RuntimeError("nothing was sent")
        self._save_folder()
        return await turn.answer.follow(turn.asking.look, self._woken, lambda: turn.cancelled)

    # Calls of the model.

    def _loop_event_from_thread(self, event: LoopEvent) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._take_loop_event, event)

    def _take_loop_event(self, event: LoopEvent) -> None:
        turn = self._turn
        if turn is not None and turn.calls is not None:  # else it is of a turn that has ended
            turn.calls.take(event)

    # Agents.

    async def _run_agent(
        self,
        turn: _Turn,
        conversations: TreeSession,
        call: AgentCall,
        entry: Mapping[str, Any],
        prompt: Prompt,
    ) -> StopReason:
        if turn.asking is None:
            raise RuntimeError("the session is not open")
        paths = paths_of(call, str(entry["category"]), self.folder)
        with suppress(EngineUnavailable):  # detectors work without a model
            await self._wait_for_model(turn, conversations)
        attached = "\n\n".join(one.text for one in prompt.files)
        service = self._required.host.service
        agent = AgentTurn(
            service,
            self._updates,
            turn.asking,
            woken=self._woken,
            cancelled=lambda: turn.cancelled,
            folder=self.folder,
        )
        request = RunRequest(
            entry["kind"],
            call.name,
            paths,
            call.task,
            attached or call.task,
            mode=self._mode,
            conversation=self.id,
        )
        run = await agent.start(request)
        try:
            place = conversations.messages.begin_exchange(prompt.typed, by=call.name)
        except PravahaError:
            service.cancel(run)
            raise
        self._save_folder()
        try:
            result = await agent.follow(run, call.name, [Path(path) for path in paths])
        except PravahaError as error:  # of a server that cannot be reached any more
            with suppress(PravahaError):
                conversations.messages.finish_exchange(place, f"The run was lost: {error}")
            raise
        answer = markdown_of(call.name, result)
        conversations.messages.finish_exchange(place, answer)
        conversations.pump()
        self._updates.tell(update_agent_message_text(answer))
        if not turn.cancelled:
            await self._show_output(call.name, result.get("output") or {}, paths)
        return "cancelled" if turn.cancelled else "end_turn"

    async def _show_output(
        self, name: str, output: Mapping[str, Any], paths: Sequence[str]
    ) -> None:
        """Show the plan of a planner, and offer the diff of an agent that writes none itself."""
        steps, diff = output.get("steps"), output.get("diff")
        if isinstance(steps, list) and (plan := steps_plan(steps)) is not None:
            self._updates.tell(plan)
        if name != REPAIR and isinstance(diff, str):
            base = Path(paths[0]) if paths else self.folder
            await offer_changes(
                diff,
                base if base.is_dir() else base.parent,
                self._new_id("patch"),
                mode=self._mode,
                files=self._files,
                updates=self._updates,
                ask=partial(allows, self._editor, self.id),
            )

    # Commands of the chat.

    async def _run_chat_command(
        self, turn: _Turn, conversations: TreeSession, call: ChatCall
    ) -> StopReason:
        if call.name == "shorten":
            return await self._shorten(turn, conversations, call.argument)
        tools = self._required.tools
        await tools.choose(call.argument, self._mode)
        await self._offer_tools()
        offered = ", ".join(tools.offered) or "no tools"
        self._updates.tell(
            update_agent_message_text(f"The model may call {offered} (mode {self._mode}).")
        )
        return "end_turn"

    async def _shorten(self, turn: _Turn, conversations: TreeSession, argument: str) -> StopReason:
        if argument not in ("drop", "summarise"):
            raise InvalidRequest("/shorten needs drop or summarise.")
        await self._wait_for_model(turn, conversations)
        summarised = argument == "summarise"
        refused = self._refused
        turn.answer = AnswerTurn(conversations, self._updates)
        if refused is None:
            conversations.context.shorten(summarised=summarised)
        else:
            model = self._required.host.client.snapshot().model
            send_shortened(
                conversations,
                refused.text,
                summarised=summarised,
                length=model.context_length if model else 0,
            )
            self._refused = None
        if conversations.answers.running:
            return await self._follow_answer(turn)
        self._updates.tell(
            update_agent_message_text("Earlier messages are left out of the context.")
        )
        return "end_turn"

    # What is sent.

    async def _tell_figures(self) -> None:
        """Send the title, and how full the context is."""
        if self._opened is None:
            return
        conversations, host = self._opened.conversations, self._opened.host
        if conversations.title != self._title:
            self._title = conversations.title
            self._updates.tell(
                SessionInfoUpdate(session_update="session_info_update", title=self._title)
            )
        model = host.client.snapshot().model
        used = conversations.context.used()
        if model is not None and used:
            self._updates.tell(
                UsageUpdate(session_update="usage_update", used=used, size=model.context_length)
            )

    # Helpers.

    async def _editor_text(self, path: Path) -> str | None:
        if not self._editor.reads_files:
            return None
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._editor.read_text_file(self.id, str(path))
        except (RequestError, ConnectionError, TimeoutError, ValueError):
            return None

    async def _woken(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._wake.wait()
        self._wake.clear()  # before what may have changed is looked at

    def _save_folder(self) -> None:
        SessionFolders(self._required.host.folders).remember(self.id, self.folder)

    def _stop_if_cancelled(self, turn: _Turn) -> None:
        if turn.cancelled:
            raise _Cancelled

    def _new_id(self, kind: str) -> str:
        self._counter += 1
        return f"{kind}-{self._counter}"

    @property
    def _required(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the session is not open")
        return self._opened
