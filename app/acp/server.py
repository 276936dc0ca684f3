"""`AcpServer`: the agent's side of the protocol: its sessions, and what a client may ask."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import AGENT_METHODS, PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    AuthenticateRequest,
    AvailableCommandsUpdate,
    CancelNotification,
    CloseSessionRequest,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeleteSessionRequest,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    SetSessionModeResponse,
)

from app.acp.commands import available_commands
from app.acp.editor import Editor
from app.acp.host import Host, OpeningHost
from app.acp.mcp_servers import further_servers
from app.acp.requests import INVALID_PARAMS, NOT_FOUND, Requests
from app.acp.session import AcpSession
from app.acp.session_folders import SessionFolders
from app.acp.session_options import modes_of, options_of
from app.acp.transport import LineTransport
from engine.api.errors import PravahaError
from engine.conversations.export import export_json
from engine.conversations.ulid import new_ulid
from engine.retrieval.parsing.document_reader import DocumentReader

PAGE = 50
"""Sessions in one answer of `session/list`."""
MAX_SESSIONS = 32
_log = logging.getLogger(__name__)


class AcpServer:
    """Serves one client. Use from one event loop.

    Args:
        opening: the engine and the agents; started and closed by the caller.
    """

    def __init__(self, opening: OpeningHost) -> None:
        self._opening = opening
        self._editor = Editor()
        self._documents = DocumentReader()
        self._sessions: dict[str, AcpSession] = {}
        self._catalogue: dict[str, Mapping[str, Any]] | None = None
        self._listing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._new: dict[str, AcpSession] = {}  # whose id the client does not know yet

    async def serve(self, transport: LineTransport) -> None:
        """Answer until the client leaves; then stop what runs and save what was said."""
        requests = Requests(
            {
                AGENT_METHODS["initialize"]: (InitializeRequest, self._initialize),
                AGENT_METHODS["authenticate"]: (AuthenticateRequest, self._authenticate),
                AGENT_METHODS["session_new"]: (NewSessionRequest, self._new_session),
                AGENT_METHODS["session_load"]: (LoadSessionRequest, self._load_session),
                AGENT_METHODS["session_resume"]: (ResumeSessionRequest, self._resume_session),
                AGENT_METHODS["session_fork"]: (ForkSessionRequest, self._fork_session),
                AGENT_METHODS["session_list"]: (ListSessionsRequest, self._list_sessions),
                AGENT_METHODS["session_close"]: (CloseSessionRequest, self._close_session),
                AGENT_METHODS["session_delete"]: (DeleteSessionRequest, self._delete_session),
                AGENT_METHODS["session_set_mode"]: (SetSessionModeRequest, self._set_mode),
                AGENT_METHODS["session_set_config_option"]: (
                    SetSessionConfigOptionSelectRequest,
                    self._set_config_option,
                ),
                AGENT_METHODS["session_prompt"]: (PromptRequest, self._prompt),
                AGENT_METHODS["session_cancel"]: (CancelNotification, self._cancel),
            }
        )
        transport.on_sent = self._sent
        connection = Connection(requests, transport, listening=False)
        self._editor.connect(connection)
        self._start(self._follow_host())
        try:
            await connection.main_loop()
        finally:
            for session in self._sessions.values():
                session.cancel()
            for task in self._tasks:
                task.cancel()
            with suppress(ConnectionError):  # of an answer that nobody reads
                await connection.close()
            for session in tuple(self._sessions.values()):
                await session.close()

    # Start.

    async def _initialize(self, given: InitializeRequest) -> InitializeResponse:
        self._editor.learn(given.client_capabilities)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    delete=SessionDeleteCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(
                name="pravaha", title="Pravāha", version=metadata.version("pravaha")
            ),
        )

    async def _authenticate(self, given: AuthenticateRequest) -> None:
        raise RequestError(
            INVALID_PARAMS,
            f"There is no way to authenticate, so not {given.method_id!r:.40} either.",
        )

    async def _follow_host(self) -> None:
        """Let the engine and the agents wake the sessions."""
        with suppress(Exception):  # a prompt says why there is none
            host = await self._host()
            host.client.on_wake(self._wake_all)
            host.service.on_change(self._wake_all)

    def _wake_all(self) -> None:
        """On any thread."""
        for session in tuple(self._sessions.values()):
            session.wake_from_thread()

    async def _host(self) -> Host:
        return await asyncio.shield(asyncio.wrap_future(self._opening.opened))

    # Sessions.

    async def _new_session(self, given: NewSessionRequest) -> NewSessionResponse:
        session = self._made(new_ulid(), given)
        self._new[session.id] = session
        return NewSessionResponse(
            session_id=session.id,
            modes=modes_of(session),
            config_options=options_of(session),
        )

    async def _load_session(self, given: LoadSessionRequest) -> LoadSessionResponse:
        session = await self._opened(given)
        await session.replay()
        self._start(self._tell_commands(session))
        return LoadSessionResponse(modes=modes_of(session), config_options=options_of(session))

    async def _resume_session(self, given: ResumeSessionRequest) -> ResumeSessionResponse:
        session = await self._opened(given)
        self._start(self._tell_commands(session))
        return ResumeSessionResponse(modes=modes_of(session), config_options=options_of(session))

    async def _fork_session(self, given: ForkSessionRequest) -> ForkSessionResponse:
        """A copy of a conversation as a session of its own; the two go on independently."""
        folder = _folder_of(given.cwd)
        host = await self._host()
        source = self._sessions.get(given.session_id)
        if source is not None:
            contents = (await source.open()).contents()
        else:
            with host.open_conversations(None, new_ulid()) as conversations:
                _open_saved(conversations, given.session_id)
                contents = conversations.contents()
        if contents is None:  # nothing was said yet
            session = self._made(new_ulid(), given)
        else:
            with host.open_conversations(None, new_ulid()) as conversations:
                conversations.conversations.add(export_json(contents))
                copy = conversations.tree_id
            SessionFolders(host.folders).remember(copy, folder)
            session = self._made(copy, given)
            await session.open(copy)
        self._new[session.id] = session
        return ForkSessionResponse(
            session_id=session.id, modes=modes_of(session), config_options=options_of(session)
        )

    async def _list_sessions(self, given: ListSessionsRequest) -> ListSessionsResponse:
        host = await self._host()
        try:
            start = int(given.cursor or 0)
        except ValueError:
            start = -1
        if start < 0:
            raise RequestError(INVALID_PARAMS, f"There is no cursor {given.cursor!r:.40}.")
        folders = SessionFolders(host.folders).all()
        with host.open_conversations(None, new_ulid()) as conversations:
            found = conversations.conversations.find()
        if given.cwd is not None:
            wanted = str(Path(given.cwd))
            found = [one for one in found if folders.get(one.id) == wanted]
        page = found[start : start + PAGE]
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=one.id,
                    cwd=folders.get(one.id, str(Path.cwd())),
                    title=one.title,
                    updated_at=datetime.fromtimestamp(one.updated_at, UTC).isoformat(),
                )
                for one in page
            ],
            next_cursor=str(start + PAGE) if len(found) > start + PAGE else None,
        )

    async def _close_session(self, given: CloseSessionRequest) -> None:
        session = self._session(given.session_id)
        del self._sessions[session.id]
        await session.close()

    async def _delete_session(self, given: DeleteSessionRequest) -> None:
        """Archive a conversation; the screen can bring it back."""
        session = self._sessions.pop(given.session_id, None)
        if session is not None:
            await session.close()
        host = await self._host()
        with host.open_conversations(None, new_ulid()) as conversations:
            try:
                _open_saved(conversations, given.session_id)
            except RequestError:
                if session is None:
                    raise
            else:
                conversations.conversations.archive(given.session_id)

    def _made(self, session_id: str, given: Any) -> AcpSession:
        """A session that is not open yet.

        Raises:
            RequestError: its folder does not exist, or there are too many sessions.
        """
        if len(self._sessions) >= MAX_SESSIONS:
            raise RequestError(
                INVALID_PARAMS, f"{MAX_SESSIONS} sessions are open: close one with session/close."
            )
        folder = _folder_of(given.cwd)
        servers, notes = further_servers(given.mcp_servers or ())
        session = AcpSession(
            session_id,
            folder,
            self._opening,
            self._editor,
            self._documents,
            mcp=servers,
            notes=notes,
        )
        self._sessions[session_id] = session
        return session

    async def _opened(self, given: Any) -> AcpSession:
        """The session of a saved conversation, with the folder that the client names.

        Raises:
            RequestError: there is no such conversation.
        """
        _folder_of(given.cwd)
        before = self._sessions.get(given.session_id)
        if before is not None:
            if before.busy:
                raise RequestError(
                    INVALID_PARAMS, "The session is answering a prompt: cancel it first."
                )
            del self._sessions[before.id]
            await before.close()
        session = self._made(given.session_id, given)
        try:
            await session.open(given.session_id)
        except BaseException as error:
            if (
                self._sessions.get(session.id) is session
            ):  # else it was closed, or is loaded once more
                del self._sessions[session.id]
            await session.close()
            if isinstance(error, PravahaError) and self._opening.opened.exception() is None:
                raise _unknown(given.session_id) from error
            raise
        return session

    def _session(self, session_id: str) -> AcpSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise _unknown(session_id)
        return found

    # Modes and options.

    async def _set_mode(self, given: SetSessionModeRequest) -> SetSessionModeResponse:
        session = self._session(given.session_id)
        _set_mode(session, given.mode_id)
        await self._editor.update(
            session.id,
            ConfigOptionUpdate(
                session_update="config_option_update", config_options=options_of(session)
            ),
        )
        return SetSessionModeResponse()

    async def _set_config_option(
        self, given: SetSessionConfigOptionSelectRequest
    ) -> SetSessionConfigOptionResponse:
        session = self._session(given.session_id)
        if given.config_id == "mode":
            _set_mode(session, given.value)
            await self._editor.update(
                session.id,
                CurrentModeUpdate(
                    session_update="current_mode_update", current_mode_id=session.mode
                ),
            )
        elif given.config_id == "model":
            session.choose_model(given.value)
        else:
            raise RequestError(INVALID_PARAMS, f"There is no option {given.config_id!r:.40}.")
        return SetSessionConfigOptionResponse(config_options=options_of(session))

    # Prompts.

    async def _prompt(self, given: PromptRequest) -> PromptResponse:
        return await self._session(given.session_id).prompt(given.prompt, self._agents)

    async def _cancel(self, given: CancelNotification) -> None:
        found = self._sessions.get(given.session_id)
        if found is not None:
            found.cancel()

    # Commands.

    async def _agents(self) -> Mapping[str, Mapping[str, Any]]:
        """Agents, pipelines and the repair by name; reads files the first time."""
        async with self._listing:
            if self._catalogue is None:
                host = await self._host()
                try:
                    listed = await asyncio.to_thread(host.service.catalogue)
                except PravahaError as error:
                    _log.warning("the agents cannot be listed: %s", error)
                    return {}
                self._catalogue = {str(one["name"]): one for one in listed}
            return self._catalogue

    async def _tell_commands(self, session: AcpSession) -> None:
        """Tell what can be typed after a slash, and the models, once they are known."""
        with suppress(PravahaError, ConnectionError):
            agents = await self._agents()
            await self._editor.update(
                session.id,
                AvailableCommandsUpdate(
                    session_update="available_commands_update",
                    available_commands=available_commands(list(agents.values())),
                ),
            )
            before = session.models
            await session.open()
            if session.models != before:
                await self._editor.update(
                    session.id,
                    ConfigOptionUpdate(
                        session_update="config_option_update", config_options=options_of(session)
                    ),
                )

    def _sent(self, message: dict[str, Any]) -> None:
        """Tell a new session's commands after the answer that has its id."""
        result = message.get("result") if self._new else None
        number = result.get("sessionId") if isinstance(result, dict) else None
        session = self._new.pop(number, None) if isinstance(number, str) else None
        if session is not None:
            self._start(self._tell_commands(session))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(_finished, self._tasks))


def _finished(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
    tasks.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a task failed", exc_info=error)


def _folder_of(cwd: str) -> Path:
    """The folder of a session.

    Raises:
        RequestError: it is relative, or is none.
    """
    path = Path(cwd)
    if not path.is_absolute():
        raise RequestError(INVALID_PARAMS, f"cwd must be an absolute path, not {cwd!r:.200}.")
    try:
        found = path.is_dir()
    except (OSError, ValueError):
        found = False
    if not found:
        raise RequestError(INVALID_PARAMS, f"There is no folder {cwd!r:.200}.")
    return path


def _open_saved(conversations: Any, session_id: str) -> None:
    try:
        conversations.conversations.open(session_id)
    except PravahaError as error:
        raise _unknown(session_id) from error


def _unknown(session_id: str) -> RequestError:
    return RequestError(NOT_FOUND, f"There is no session {session_id!r:.80}.")


def _set_mode(session: AcpSession, mode: str) -> None:
    try:
        session.mode = mode
    except PravahaError as error:
        raise RequestError(INVALID_PARAMS, str(error)) from error
