"""`Registry`: everything that is registered, by name; and the loading of plugins.

A plugin that cannot be loaded or that raises is listed with its error and left out; the others work.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pluggy

from agents.api.errors import UnknownAgent
from agents.detectors.detector import Detector
from agents.guardrails.builtin import RecognizerFactory
from agents.mcp.servers import McpServers
from agents.outputs.base import Output
from agents.plugins.hooks import API_VERSION, GROUP, Hooks
from agents.procedures.procedure import Procedure
from agents.procedures.reducers import Reducer
from agents.tools.tool import Tool

_LOG = logging.getLogger(__name__)
BUILTIN = "built-in"


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin as `pravaha plugins list` shows it.

    Attributes:
        name: name of its entry point.
        version: of its distribution, or empty.
        provides: names of what it registered, by kind.
        error: why it is not loaded, or empty.
    """

    name: str
    version: str = ""
    provides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""


@dataclass(slots=True)
class Registry:
    """Everything by name; folders of specifications and pipelines; the configured MCP servers."""

    detectors: dict[str, Detector] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    guardrails: dict[str, RecognizerFactory] = field(default_factory=dict)
    outputs: dict[str, type[Output]] = field(default_factory=dict)
    procedures: dict[str, Procedure] = field(default_factory=dict)
    reducers: dict[str, Reducer] = field(default_factory=dict)
    agent_folders: list[Path] = field(default_factory=list)
    pipeline_folders: list[Path] = field(default_factory=list)
    plugins: list[PluginInfo] = field(default_factory=list)
    mcp: McpServers = field(default_factory=McpServers)

    def detector(self, name: str) -> Detector:
        """The detector with this name.

        Raises:
            UnknownAgent: there is none.
        """
        try:
            return self.detectors[name]
        except KeyError:
            raise UnknownAgent(f"There is no detector {name}.") from None

    def catalogue(self) -> Sequence[Tool]:
        """All tools that prompts may name: those registered, and the approved ones of MCP servers."""
        return (*self.tools.values(), *self.mcp.catalogue())

    def tool(self, name: str) -> Tool:
        """The tool with this name.

        Raises:
            UnknownAgent: there is none.
        """
        try:
            return self.tools[name]
        except KeyError:
            raise UnknownAgent(f"There is no tool {name}.") from None


def load_registry(enabled: Iterable[str] | None = None) -> Registry:
    """The built-in plugin and the installed ones.

    Args:
        enabled: names of the installed plugins to load; None loads all.
    """
    from agents.plugins import builtin

    registry = Registry()
    _register(registry, BUILTIN, builtin, version=_version("pravaha"))
    wanted = None if enabled is None else set(enabled)
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        if wanted is not None and entry.name not in wanted:
            continue
        version = "" if entry.dist is None else entry.dist.version
        try:
            plugin = entry.load()
        except Exception as error:  # a plugin's code: anything may be raised
            _LOG.warning("plugin %s cannot be loaded", entry.name, exc_info=True)
            message = f"{type(error).__name__}: {error}"
            registry.plugins.append(PluginInfo(entry.name, version, error=message))
            continue
        _register(registry, entry.name, plugin, version=version)
    return registry


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _register(registry: Registry, name: str, plugin: Any, *, version: str) -> None:
    """Add what a plugin provides: all of it, or nothing and its error."""
    asked = getattr(plugin, "pravaha_api_version", None)
    if asked != API_VERSION:
        error = f"it is written for version {asked} of the plugin interface; this is {API_VERSION}"
        registry.plugins.append(PluginInfo(name, version, error=error))
        return
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    try:
        manager.register(plugin, name)
        manager.check_pending()
        added = _collect(registry, manager)
    except Exception as error:  # a plugin's code: anything may be raised
        _LOG.warning("plugin %s cannot be used", name, exc_info=True)
        message = f"{type(error).__name__}: {error}"
        registry.plugins.append(PluginInfo(name, version, error=message))
        return
    provides = {kind: tuple(str(key) for key in keys) for kind, keys in added.items() if keys}
    registry.plugins.append(PluginInfo(name, version, provides))


def _collect(registry: Registry, manager: pluggy.PluginManager) -> dict[str, list[Any]]:
    hook = manager.hook

    def items(call: Callable[[], list[Iterable[Any]]]) -> list[Any]:
        return [one for many in call() for one in many]

    found: dict[str, dict[str, Any]] = {
        "detectors": {one.name: one for one in items(hook.pravaha_detectors)},
        "tools": {one.name: one for one in items(hook.pravaha_tools)},
        "guardrails": {k: v for part in hook.pravaha_guardrails() for k, v in part.items()},
        "outputs": {one.__name__: one for one in items(hook.pravaha_outputs)},
        "procedures": {k: v for part in hook.pravaha_procedures() for k, v in part.items()},
        "reducers": {k: v for part in hook.pravaha_reducers() for k, v in part.items()},
    }
    for kind, named in found.items():
        twice = sorted(set(named) & set(getattr(registry, kind)))
        if twice:
            raise ValueError(f"{kind[:-1]} {twice[0]} exists already")
    folders = {
        "agent_folders": items(hook.pravaha_agent_folders),
        "pipeline_folders": items(hook.pravaha_pipeline_folders),
    }
    for kind, named in found.items():
        getattr(registry, kind).update(named)
    for kind, paths in folders.items():
        getattr(registry, kind).extend(paths)
    return {kind: list(named) for kind, named in found.items()} | folders
