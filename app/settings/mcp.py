"""The table `[mcp.servers.NAME]` of `pravaha.toml`."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from agents.mcp.server import CALL_S, CONNECT_S, McpServer, check_server_url

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9-]+")


def _folder(value: object) -> object:
    return Path(value).expanduser() if isinstance(value, str) else value


class McpServerSettings(BaseModel):
    """A program to start, or a URL to ask."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str | None = Field(None, min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: Annotated[Path | None, BeforeValidator(_folder)] = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    connect_timeout: float = Field(CONNECT_S, gt=0, le=600)
    timeout: float = Field(CALL_S, gt=0, le=3600)

    @field_validator("url")
    @classmethod
    def _url_is_allowed(cls, value: str | None) -> str | None:
        if value is not None:
            check_server_url(value)
        return value

    @field_validator("env")
    @classmethod
    def _variables_are_names(cls, value: dict[str, str]) -> dict[str, str]:
        return _checked(value, _VARIABLE, "variable")

    @field_validator("headers")
    @classmethod
    def _headers_are_names(cls, value: dict[str, str]) -> dict[str, str]:
        return _checked(value, _HEADER, "header")

    @model_validator(mode="after")
    def _one_of_both(self) -> "McpServerSettings":
        if (self.command is None) == (self.url is None):
            raise ValueError("should have either command or url")
        if self.url is None and self.headers:
            raise ValueError("should have headers only with url")
        if self.command is None and (self.args or self.env or self.cwd):
            raise ValueError("should have args, env and cwd only with command")
        return self


class McpSettings(BaseModel):
    """The MCP servers by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: dict[str, McpServerSettings] = Field(default_factory=dict)

    @field_validator("servers")
    @classmethod
    def _names_are_names(cls, value: dict[str, McpServerSettings]) -> dict[str, McpServerSettings]:
        for name in value:
            if not _NAME.fullmatch(name):
                raise ValueError(f"should have names of letters, digits, - and _, not {name!r:.40}")
        return value

    def configured(self) -> tuple[McpServer, ...]:
        """The servers as the agents use them."""
        return tuple(
            McpServer(
                name=name,
                command=one.command or "",
                args=one.args,
                env=one.env,
                cwd=one.cwd,
                url=one.url or "",
                headers=one.headers,
                connect_s=one.connect_timeout,
                call_s=one.timeout,
            )
            for name, one in self.servers.items()
        )


def _checked(values: dict[str, str], names: re.Pattern[str], what: str) -> dict[str, str]:
    for name, value in values.items():
        if not names.fullmatch(name):
            raise ValueError(f"should have names of {what}s, not {name!r:.40}")
        if any(letter in value for letter in "\0\r\n"):
            raise ValueError(f"should have a {what} {name} of one line")
    return values
