"""`ApprovedServers`: which servers may be started and which of their tools called, by digest, on disk.

One JSON file with mode 0600, replaced atomically under a lock between processes. An approval belongs to a
name and to a configuration: another program under the same name is another server.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.mcp.definition import ToolDefinition, definition_from_fields
from agents.mcp.errors import McpError
from agents.mcp.server import McpServer
from engine.files.file_lock import hold
from engine.files.replaced_file import replace_file

FILE_NAME = "mcp-approved.json"
_VERSION = 1
_MAX_BYTES = 64 << 20


class ApprovedServers:
    """The approvals in one file. Methods may be called from any thread and process."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def may_start(self, server: McpServer) -> bool:
        """Whether the server, configured as it is, was approved.

        Raises:
            McpError: the file cannot be read.
        """
        return self._entry(self._read(), server) is not None

    def tools(self, server: McpServer) -> tuple[ToolDefinition, ...]:
        """The approved tools of the server, configured as it is; each is what its digest says.

        Raises:
            McpError: the file cannot be read.
        """
        entry = self._entry(self._read(), server) or {}
        found = []
        for one in entry.get("tools", ()):
            definition = definition_from_fields(one["definition"])
            if definition.digest == one["digest"]:
                found.append(definition)
        return tuple(found)

    def other_configurations(self, server: McpServer) -> int:
        """How many other configurations of a server of this name were approved."""
        entries = self._read()["servers"].get(server.name, {})
        return len(set(entries) - {server.launch_digest})

    def approve_start(self, server: McpServer) -> None:
        """Let the server be started, configured as it is."""
        with self._changing() as data:
            self._made(data, server)

    def approve_tools(self, server: McpServer, tools: Iterable[ToolDefinition]) -> None:
        """Let exactly these tools be called; earlier approvals of others end."""
        with self._changing() as data:
            self._made(data, server)["tools"] = [
                {"digest": one.digest, "definition": one.fields()} for one in tools
            ]

    def forget(self, name: str) -> bool:
        """Withdraw all approvals of servers of this name; whether there was one."""
        with self._changing() as data:
            return data["servers"].pop(name, None) is not None

    def _entry(self, data: dict[str, Any], server: McpServer) -> dict[str, Any] | None:
        entries: dict[str, Any] = data["servers"].get(server.name, {})
        return entries.get(server.launch_digest)

    def _made(self, data: dict[str, Any], server: McpServer) -> dict[str, Any]:
        """The entry of a server, added if there is none."""
        entries: dict[str, dict[str, Any]] = data["servers"].setdefault(server.name, {})
        new = {"shown": server.shown(), "approved": self._clock(), "tools": []}
        return entries.setdefault(server.launch_digest, new)

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                data = json.loads(file.read(_MAX_BYTES))
            servers = data["servers"]
            valid = data["version"] == _VERSION and isinstance(servers, dict)
            valid = valid and all(isinstance(entries, dict) for entries in servers.values())
        except FileNotFoundError:
            return {"version": _VERSION, "servers": {}}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise McpError(
                f"The approvals in {self._path} cannot be read: {error!s:.200}."
            ) from error
        if not valid:
            raise McpError(f"{self._path} does not hold approvals of this version of Pravāha.")
        return dict(data)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The contents, written back at the end; a reader sees the old or the new ones."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with hold(self._path.with_suffix(".lock")):
                data = self._read()
                yield data
                text = json.dumps(data, ensure_ascii=False, indent=1)
                replace_file(self._path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise McpError(f"The approvals in {self._path} cannot be written: {error}.") from error
