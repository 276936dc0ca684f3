"""Opens the agents' roster and cluster from settings."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.runtime.collections import has_collections, open_library
from app.settings.sources import load_settings

if TYPE_CHECKING:
    from agents.cluster import Cluster
    from agents.plugins.registry import Registry
    from agents.roster.live_roster import LiveRoster
    from agents.roster.roster import Roster
    from agents.runs.run_guard import RunGuard
    from agents.runs.run_memory import RunMemory
    from agents.runs.run_store import RunStore
    from agents.runs.tool_settings import ToolSettings
    from agents.service.run_service import RunService
    from app.settings.settings import Settings
    from engine.clients.engine_client import EngineClient
    from engine.embedding.embedder import Embedder
    from engine.runtime.engine import AsyncPravahaEngine


def open_registry(settings: "Settings | None" = None) -> "Registry":
    """Everything that is registered, with the tools and MCP servers that the settings turn on."""
    from agents.mcp.servers import McpServers
    from agents.plugins.registry import load_registry
    from agents.tools.http_fetch import http_fetch_tool
    from agents.tools.rag_search import rag_search_tool

    settings = load_settings() if settings is None else settings
    registry = load_registry()
    registry.tools["http_fetch"] = http_fetch_tool(settings.http_domains)
    if has_collections(settings):
        registry.tools["rag_search"] = rag_search_tool(lambda: open_library(settings))
    registry.mcp = McpServers(settings.mcp.configured(), settings.mcp_approved)
    return registry


def user_agents_folder() -> Path:
    """The folder of the user's own agents."""
    return load_settings().config_dir / "agents"


def open_roster(registry: "Registry", project: Path | None = None) -> "Roster":
    """The built-in agents, the user's and those of a project, by default the current folder's."""
    from agents.roster.roster import load_roster

    return load_roster(registry, user_folder=user_agents_folder(), project=project or Path.cwd())


def open_live_roster(registry: "Registry", project: Path | None = None) -> "LiveRoster":
    """`open_roster` that follows changed files, for processes that live long."""
    from agents.roster.live_roster import LiveRoster
    from agents.roster.roster import PROJECT_FOLDER

    root = project or Path.cwd()
    folders = [*registry.agent_folders, user_agents_folder(), root / PROJECT_FOLDER]
    return LiveRoster(lambda: open_roster(registry, root), folders)


def pipeline_folders() -> list[Path]:
    """The folders of the user's own pipelines."""
    return [load_settings().config_dir / "pipelines"]


def tool_settings(settings: "Settings") -> "ToolSettings":
    """What the user decided about the tools of agents.

    Raises:
        InvalidTask: an approval rule cannot be parsed.
    """
    from agents.runs.approval_rules import parse_rule
    from agents.runs.tool_settings import ToolSettings

    return ToolSettings(
        sandbox=settings.sandbox,
        rules=tuple(parse_rule(rule) for rule in settings.allow),
        artifacts=settings.artifacts,
    )


def open_run_store() -> "RunStore":
    """The database of pipeline runs in the data folder."""
    from agents.runs.run_store import RunStore

    return RunStore(load_settings().data_dir / "agents.db")


def open_run_guard(
    settings: "Settings",
    registry: "Registry",
    embedder: "Embedder | None",
    client: "EngineClient | None" = None,
) -> "RunGuard":
    """The guardrails of agents' runs.

    Args:
        settings: the settings.
        registry: its guardrails are the recognizers.
        embedder: the classifier's model; tier 2 is left out where it is not installed.
        client: the engine that tier 3 asks, if the settings want it.
    """
    from agents.guardrails.guardrails import Guardrails
    from agents.guardrails.policy import agent_policy
    from agents.runs.run_guard import RunGuard
    from app.runtime.guardrails import open_classifiers, open_judge

    if not settings.guardrails_agents:
        return RunGuard(Guardrails(settings.guardrail_policy("off")))
    judge = None if client is None else open_judge(settings, client)
    policy = agent_policy(settings.guardrail_policy("redact"))
    classifiers = open_classifiers(embedder, judge)
    return RunGuard(Guardrails(policy, classifiers, recognizers=registry.guardrails))


def open_run_memory(
    settings: "Settings", embedder: "Embedder | None", *, records: bool, recalls: bool = True
) -> "RunMemory":
    """The memory of agents' runs.

    Args:
        settings: the settings.
        embedder: searches meaning, if its model is installed.
        records: whether runs leave episodes with `memory_episodes = "auto"`.
        recalls: whether memories go into prompts.
    """
    from agents.runs.run_memory import RunMemory

    wanted = {"auto": records, "always": True, "never": False}[settings.memory_episodes]
    return RunMemory(
        settings.memory,
        records=wanted,
        recall_tokens=settings.memory_recall_tokens if recalls else 0,
        embedder=embedder if embedder is not None and embedder.installed else None,
    )


def open_run_service(
    settings: "Settings",
    engine: "AsyncPravahaEngine | None",
    *,
    roots: Sequence[Path] | None = None,
    remembers: bool = True,
    has_approver: bool = True,
) -> "RunService":
    """The service that runs agents: over the given engine, or on the server that `attach` names.

    Args:
        settings: the settings.
        engine: an engine in this process; None with `attach`.
        roots: folders whose files agents may read; None allows any.
        remembers: whether runs leave episodes with `memory_episodes = "auto"`: not those of a server's
            clients, whose memory would be everybody's.
        has_approver: whether somebody can be asked; otherwise what needs an approval is denied at once.
    """
    if engine is None:
        from agents.service.http_service import HttpRunService

        return HttpRunService(settings.attach or "", api_key=settings.plain_api_key)
    from agents.service.local_service import LocalRunService

    return LocalRunService(
        lambda: _open_cluster(settings, engine, remembers=remembers, has_approver=has_approver),
        roots=roots,
    )


def _open_cluster(
    settings: "Settings", engine: "AsyncPravahaEngine", *, remembers: bool, has_approver: bool
) -> "Cluster":
    from agents.cluster import Cluster
    from agents.runs.approvals import Approvals
    from engine.clients.in_process import InProcessClient

    registry = open_registry(settings)
    _restrict_collections(settings, registry, engine.embedder, asks=remembers)
    client = InProcessClient(engine)
    return Cluster(
        registry=registry,
        roster=open_live_roster(registry),
        client=client,
        approvals=Approvals(has_approver=has_approver),
        pipeline_folders=pipeline_folders(),
        guard=open_run_guard(settings, registry, engine.embedder, client),
        memory=open_run_memory(settings, engine.embedder, records=remembers),
        settings=tool_settings(settings),
    )


def _restrict_collections(
    settings: "Settings", registry: "Registry", embedder: "Embedder | None", *, asks: bool
) -> None:
    """Keep the user's collections from clients of a server.

    The screen's runs are also started over HTTP, after `/serve`: there each search asks the person at the
    screen. A server without a screen has nobody to ask, so the tool is off.
    """
    from agents.tools.rag_search import rag_search_tool

    if asks and has_collections(settings):
        registry.tools["rag_search"] = rag_search_tool(
            lambda: open_library(settings, embedder), asks=lambda arguments: True
        )
    else:
        registry.tools["rag_search"] = rag_search_tool()


@contextmanager
def open_model_client(flags: Mapping[str, Any]) -> Iterator["EngineClient"]:
    """An engine from settings with its model loaded, closed at the end.

    Raises:
        ModelError: the model is not installed, or could not be fetched.
        EngineUnavailable: it could not be loaded.
    """
    from app.runtime.opening import open_client, wait_loaded

    with open_client(load_settings(flags)) as opened:
        opened.start()
        wait_loaded(opened.client)
        yield opened.client
