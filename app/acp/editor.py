"""`Editor`: what is asked of the client, and told to it."""

from typing import Any

from acp.connection import Connection
from acp.meta import CLIENT_METHODS
from acp.schema import (
    ClientCapabilities,
    PermissionOption,
    ReadTextFileRequest,
    ReadTextFileResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallUpdate,
    WriteTextFileRequest,
)
from acp.utils import serialize_params

from agents.runs.approvals import Decision

_OPTIONS: dict[str, tuple[Decision, PermissionOption]] = {
    "once": ("once", PermissionOption(option_id="once", name="Allow", kind="allow_once")),
    "always": (
        "always",
        PermissionOption(
            option_id="always", name="Always allow in this conversation", kind="allow_always"
        ),
    ),
    "deny": ("deny", PermissionOption(option_id="deny", name="Reject", kind="reject_once")),
}


class Editor:
    """The client at the other end of the connection. Use from its event loop.

    Attributes:
        reads_files: whether it reads files, with what is not saved yet.
        writes_files: whether it writes files.
    """

    def __init__(self) -> None:
        self.reads_files = False
        self.writes_files = False
        self._connection: Connection | None = None

    def connect(self, connection: Connection) -> None:
        """Use this connection from now on."""
        self._connection = connection

    def learn(self, capabilities: ClientCapabilities | None) -> None:
        """Take what the client says that it can do."""
        files = None if capabilities is None else capabilities.fs
        self.reads_files = bool(files is not None and files.read_text_file)
        self.writes_files = bool(files is not None and files.write_text_file)

    async def update(self, session: str, update: Any) -> None:
        """Tell what happens in a session.

        Raises:
            ConnectionError: the client has left.
        """
        told = SessionNotification(session_id=session, update=update)
        await self._connected.send_notification(
            CLIENT_METHODS["session_update"], serialize_params(told)
        )

    async def ask(
        self, session: str, call: ToolCallUpdate, *, always: bool = True
    ) -> Decision | None:
        """The person's decision about a call; None if the turn was cancelled.

        Args:
            session: the session.
            call: what is asked about.
            always: whether the decision may be kept for the conversation.

        Raises:
            RequestError, ConnectionError: the client cannot be asked.
        """
        offered = [option for name, (_, option) in _OPTIONS.items() if always or name != "always"]
        request = RequestPermissionRequest(session_id=session, tool_call=call, options=offered)
        outcome = (
            await self._request("session_request_permission", request, RequestPermissionResponse)
        ).outcome
        if outcome.outcome == "cancelled":
            return None
        return _OPTIONS.get(outcome.option_id, _OPTIONS["deny"])[0]

    async def read_text_file(self, session: str, path: str) -> str:
        """The text of a file as the client has it.

        Raises:
            RequestError, ConnectionError: it has none.
        """
        request = ReadTextFileRequest(session_id=session, path=path)
        answer = await self._request("fs_read_text_file", request, ReadTextFileResponse)
        return str(answer.content)

    async def write_text_file(self, session: str, path: str, content: str) -> None:
        """Write a file.

        Raises:
            RequestError, ConnectionError: it was not written.
        """
        request = WriteTextFileRequest(session_id=session, path=path, content=content)
        await self._connected.send_request(
            CLIENT_METHODS["fs_write_text_file"], serialize_params(request)
        )

    async def _request(self, method: str, request: Any, answer: Any) -> Any:
        given = await self._connected.send_request(
            CLIENT_METHODS[method], serialize_params(request)
        )
        return answer.model_validate(given)

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            raise ConnectionError("No client is connected.")
        return self._connection
