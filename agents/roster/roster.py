"""`Roster`: all agents by key, from the packaged folders, the user's and the project's, in this order.

A later file replaces an earlier one of the same name. A project's file may only tighten what the agent of
that name may do, unless the user trusts the project.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.api.agent_spec import AgentSpec
from agents.api.errors import InvalidSpec, UnknownAgent
from agents.plugins.registry import Registry
from agents.roster.lint import check_spec
from agents.specs.spec_file import read_spec
from agents.text.near import near_matches

PROJECT_FOLDER = Path(".pravaha/agents")
_STRICTNESS = {"auto": 0, "ask": 1, "deny": 2}


@dataclass(slots=True)
class Roster:
    """The agents.

    Attributes:
        specs: by key, in the order of the folders and file names.
        problems: one sentence for each file that is left out.
    """

    specs: dict[str, AgentSpec] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[AgentSpec]:
        return iter(self.specs.values())

    def get(self, key: str) -> AgentSpec:
        """The agent with this key.

        Raises:
            UnknownAgent: there is none; near matches are named.
        """
        spec = self.specs.get(key)
        if spec is None:
            near = near_matches(key, self.specs)
            hint = f" Did you mean {near[0]}?" if near else " `pravaha agents list` shows all."
            raise UnknownAgent(f"There is no agent {key!r:.60}.{hint}")
        return spec


def load_roster(
    registry: Registry,
    *,
    user_folder: Path | None = None,
    project: Path | None = None,
    trust_project: bool = False,
) -> Roster:
    """Read all specifications. Files with errors are left out and listed.

    Args:
        registry: what specifications may refer to.
        user_folder: the user's own agents.
        project: root of a project, whose `.pravaha/agents` is read.
        trust_project: let a project's files widen permissions.
    """
    roster = Roster()
    for folder in registry.agent_folders:
        _add(roster, registry, folder)
    if user_folder is not None:
        _add(roster, registry, user_folder)
    if project is not None:
        _add(roster, registry, project / PROJECT_FOLDER, may_widen=trust_project)
    return roster


def _add(roster: Roster, registry: Registry, folder: Path, *, may_widen: bool = True) -> None:
    for path in _files(folder):
        try:
            spec = read_spec(path)
            check_spec(spec, registry)
            earlier = roster.specs.get(spec.key)
            if not may_widen:
                _refuse_widening(spec, earlier)
        except InvalidSpec as error:
            roster.problems.append(str(error))
            continue
        roster.specs[spec.key] = spec


def _files(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob("*.md")) if folder.is_dir() else ()


def _refuse_widening(spec: AgentSpec, earlier: AgentSpec | None) -> None:
    """A project's agent gets no tool with side effects that it did not have, and no looser mode.

    Raises:
        InvalidSpec: it would.
    """
    if earlier is None:
        wider = set(spec.tools) - {"read", "grep", "glob", "git"}
        looser = False  # a specification only tightens the mode of a run
    else:
        wider = set(spec.tools) - set(earlier.tools)
        wider |= set(earlier.disallowed_tools) - set(spec.disallowed_tools)
        looser = _STRICTNESS[spec.permission_mode] < _STRICTNESS[earlier.permission_mode]
    if spec.mcp_servers and (earlier is None or set(spec.mcp_servers) - set(earlier.mcp_servers)):
        wider.add("MCP servers")
    if wider or looser:
        what = ", ".join(sorted(wider)) or f"permissionMode {spec.permission_mode}"
        raise InvalidSpec(
            f"{spec.path}: a project's agent may not widen permissions ({what}): copy the file to "
            "your own folder of agents, or trust the project."
        )
