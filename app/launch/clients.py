"""`CLIENTS`: the coding agents that `pravaha launch` knows, and what each needs to use our server.

Their settings were tried with the programs themselves (docs/clients.md), but for what `untried` says.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.launch.settings_text import Document, changed_json, changed_toml, put_named, table_at

NAME = "pravaha"
"""Of our provider in the settings of clients."""
NO_KEY = "none"
"""What programs get that insist on a key, where the server has none."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a client is to use.

    Attributes:
        url: without `/v1`.
        model: the name of its model.
        api_key: its key; None for none.
    """

    url: str
    model: str
    api_key: str | None = None

    @property
    def key(self) -> str:
        """A key in any case."""
        return self.api_key or NO_KEY


Environ = Mapping[str, str]
NewText = Callable[[str, Server, str], str]
"""The text of the settings after the change, from the text before, the server and the file's name."""


def _nothing(server: Server) -> dict[str, str]:
    return {}


def _no_arguments(server: Server) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent.

    Attributes:
        name: what it is called here.
        program: what is started.
        title: its own name.
        path: where its settings are, from the environment; None if it needs none.
        new_text: changes its settings.
        environment: variables that it is started with.
        arguments: arguments that it is started with.
        untried: whether nobody has run it against our server.
    """

    name: str
    program: str
    title: str
    path: Callable[[Environ], Path] | None = None
    new_text: NewText | None = None
    environment: Callable[[Server], dict[str, str]] = field(default=_nothing)
    arguments: Callable[[Server], list[str]] = field(default=_no_arguments)
    untried: bool = False


def home_of(environ: Environ) -> Path:
    """The home folder."""
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _config_home(environ: Environ) -> Path:
    given = environ.get("XDG_CONFIG_HOME", "")
    return Path(given) if given.startswith("/") else home_of(environ) / ".config"


def _in_folder(variable: str, folder: str, file: str) -> Callable[[Environ], Path]:
    def path(environ: Environ) -> Path:
        given = environ.get(variable)
        return Path(given).expanduser() / file if given else home_of(environ) / folder / file

    return path


def _vibe(text: str, server: Server, name: str) -> str:
    def change(document: Document) -> None:
        document["active_model"] = NAME
        put_named(
            document,
            "providers",
            {
                "name": NAME,
                "api_base": f"{server.url}/v1",
                "api_key_env_var": "PRAVAHA_API_KEY" if server.api_key else "",
                "backend": "generic",
            },
        )
        put_named(
            document,
            "models",
            {"alias": NAME, "name": server.model, "provider": NAME, "temperature": 0.0},
            key="alias",
        )

    return changed_toml(text, change, name)


def _codex(text: str, server: Server, name: str) -> str:
    def change(document: Document) -> None:
        document["model"] = server.model
        document["model_provider"] = NAME
        provider: dict[str, Any] = {
            "name": "Pravaha",
            "base_url": f"{server.url}/v1",
            "wire_api": "responses",
        }
        if server.api_key:
            provider["env_key"] = "PRAVAHA_API_KEY"
        table_at(document, "model_providers", NAME).update(provider)
        # Small models call what they are offered, such as agents of its own.
        table_at(document, "features").update({"multi_agent": False, "goals": False})

    return changed_toml(text, change, name)


def _opencode_path(environ: Environ) -> Path:
    folder = _config_home(environ) / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _opencode(text: str, server: Server, name: str) -> str:
    def change(document: Document) -> None:
        document.setdefault("$schema", "https://opencode.ai/config.json")
        options = {"baseURL": f"{server.url}/v1"}
        if server.api_key:
            options["apiKey"] = "{env:PRAVAHA_API_KEY}"
        provider = table_at(document, "provider", NAME)
        provider.update(npm="@ai-sdk/openai-compatible", name="Pravāha", options=options)
        table_at(document, "provider", NAME, "models")[server.model] = {"name": server.model}
        document["model"] = f"{NAME}/{server.model}"

    return changed_json(text, change, name)


def _with_key(server: Server) -> dict[str, str]:
    return {"PRAVAHA_API_KEY": server.key}


def _openai(server: Server) -> dict[str, str]:
    return {"OPENAI_API_BASE": f"{server.url}/v1", "OPENAI_API_KEY": server.key}


def _anthropic(server: Server) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_AUTH_TOKEN": server.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _mini(server: Server) -> list[str]:
    values = {
        "model.model_kwargs.api_base": f"{server.url}/v1",
        "model.model_kwargs.tool_choice": "required",
        "model.cost_tracking": "ignore_errors",
    }
    options = [part for name, value in values.items() for part in ("-c", f"{name}={value}")]
    return ["-m", f"openai/{server.model}", "-c", "mini.yaml", *options]


CLIENTS: Mapping[str, Client] = {
    one.name: one
    for one in (
        Client(
            "aider",
            "aider",
            "aider",
            environment=_openai,
            arguments=lambda server: [
                "--model",
                f"openai/{server.model}",
                "--edit-format",
                "whole",
            ],
        ),
        Client("claude", "claude", "Claude Code", environment=_anthropic),
        Client(
            "codex",
            "codex",
            "Codex",
            _in_folder("CODEX_HOME", ".codex", "config.toml"),
            _codex,
            environment=_with_key,
        ),
        Client(
            "mini-swe-agent",
            "mini",
            "mini-swe-agent",
            environment=lambda server: {"OPENAI_API_KEY": server.key},
            arguments=_mini,
        ),
        Client(
            "opencode",
            "opencode",
            "opencode",
            _opencode_path,
            _opencode,
            environment=_with_key,
            untried=True,
        ),
        Client(
            "vibe",
            "vibe",
            "Mistral Vibe",
            _in_folder("VIBE_HOME", ".vibe", "config.toml"),
            _vibe,
            environment=_with_key,
        ),
    )
}


def environment_of(
    client: Client, server: Server, environ: Environ | None = None
) -> dict[str, str]:
    """The whole environment that a client is started with."""
    return {**(os.environ if environ is None else environ), **client.environment(server)}
