"""`Pipeline` and `Node`: a directed acyclic graph of agents, checked before it starts."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from agents.api.errors import InvalidSpec, UnknownAgent
from agents.api.finding import Severity
from agents.procedures.reducers import REDUCERS
from agents.roster.roster import Roster
from agents.specs.packaged import GATES

MAX_NODES = 100


@dataclass(frozen=True, slots=True)
class Condition:
    """When a node runs; it is skipped otherwise.

    Attributes:
        node: the earlier node that is looked at; one of `needs`.
        findings: it has a finding of at least this severity.
        failed: it failed, or it did not.
        label: its `Choice` or `Route` has this label.
        passed: its verdict passed, or it did not.
    """

    node: str
    findings: Severity | None = None
    failed: bool | None = None
    label: str | None = None
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node. Exactly one of `agent`, `reduce` and `pipeline` is set.

    Attributes:
        name: unique in the pipeline.
        agent: key of the agent.
        reduce: name of the reducer that joins the outputs of `needs`.
        pipeline: name of a pipeline to run, or `{node.member}` to run the one that a router chose.
        needs: nodes that must have finished.
        task: the task; `{task}` is the run's, `{node.member}` a text member of an earlier output. Empty
            takes the run's.
        document: as `task`; empty takes the run's document.
        when: condition, or None.
        timeout_s: seconds for one attempt.
        retries: further attempts after a failure; only for agents without side effects.
        required: a failure skips all dependants and fails the run; otherwise dependants are told of the gap.
    """

    name: str
    agent: str = ""
    reduce: str | None = None
    pipeline: str = ""
    needs: tuple[str, ...] = ()
    task: str = ""
    document: str = ""
    when: Condition | None = None
    timeout_s: float = 600.0
    retries: int = 0
    required: bool = True


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A graph.

    Attributes:
        name: such as `code-review`.
        description: one sentence.
        nodes: by name, in the file's order.
        output: the node whose output is the run's.
        concurrency: nodes that run at the same time.
        tokens: budget of computed tokens of all nodes together.
        seconds: budget of wall time.
        source: the YAML text, kept with each run so that it can be resumed.
    """

    name: str
    description: str
    nodes: Mapping[str, Node]
    output: str
    concurrency: int = 6
    tokens: int = 100_000
    seconds: float = 1_800.0
    source: str = field(default="", repr=False)

    def order(self) -> list[str]:
        """Names such that each node follows what it needs, in the file's order where there is a choice."""
        return list(
            TopologicalSorter({n.name: n.needs for n in self.nodes.values()}).static_order()
        )

    def dependants(self, name: str) -> set[str]:
        """All nodes that need this one, directly or not."""
        found: set[str] = set()
        for node in (self.nodes[one] for one in self.order()):
            if name in node.needs or found & set(node.needs):
                found.add(node.name)
        return found


def _check_gates(pipeline: Pipeline) -> None:
    """After dynamic routing, the mandatory gates run whatever was chosen."""
    unconditional = {
        node.agent for node in pipeline.nodes.values() if node.required and not node.when
    }
    missing = [gate for gate in GATES if gate not in unconditional]
    if missing:
        raise InvalidSpec(
            f"Pipeline {pipeline.name}: it runs a pipeline that a router chooses and must have the "
            f"required node {missing[0]}, without a condition."
        )


_SIDE_EFFECTS = {"write", "edit", "shell", "python", "http_fetch"}


def check_pipeline(pipeline: Pipeline, roster: Roster, reducers: Container[str] = REDUCERS) -> None:
    """Check the graph against the roster.

    Args:
        pipeline: the graph.
        roster: the agents.
        reducers: names of the reducers; `Registry.reducers` has those of the plugins, too.

    Raises:
        InvalidSpec: a cycle, an unknown node, agent or reducer, a condition on a node that is not needed,
            retries of an agent with side effects, an unknown output.
    """
    name = pipeline.name
    if not pipeline.nodes or len(pipeline.nodes) > MAX_NODES:
        raise InvalidSpec(f"Pipeline {name}: it must have between 1 and {MAX_NODES} nodes.")
    for node in pipeline.nodes.values():
        for need in node.needs:
            if need not in pipeline.nodes:
                raise InvalidSpec(
                    f"Pipeline {name}: node {node.name} needs {need}, which is no node."
                )
        _check_node(node, name, roster, reducers)
    try:
        pipeline.order()
    except CycleError as error:
        cycle = " → ".join(str(one) for one in error.args[1])
        raise InvalidSpec(
            f"Pipeline {name}: its nodes need each other in a cycle: {cycle}."
        ) from None
    if pipeline.output not in pipeline.nodes:
        raise InvalidSpec(f"Pipeline {name}: its output {pipeline.output} is no node.")
    if any("{" in node.pipeline for node in pipeline.nodes.values()):
        _check_gates(pipeline)


def _check_node(node: Node, pipeline: str, roster: Roster, reducers: Container[str]) -> None:
    where = f"Pipeline {pipeline}: node {node.name}"
    if (bool(node.agent), node.reduce is not None, bool(node.pipeline)).count(True) != 1:
        raise InvalidSpec(f"{where} must have exactly one of agent, reduce and pipeline.")
    if node.reduce is not None and not node.needs:
        raise InvalidSpec(f"{where} reduces nothing: give it needs.")
    if node.reduce is not None and node.reduce not in reducers:
        raise InvalidSpec(f"{where}: there is no reducer {node.reduce!r:.60}.")
    if node.when is not None and node.when.node not in node.needs:
        raise InvalidSpec(f"{where} has a condition on {node.when.node}, which it does not need.")
    if not node.agent:
        return
    try:
        spec = roster.get(node.agent)
    except UnknownAgent as error:
        raise InvalidSpec(f"{where}: {error}") from error
    if node.retries and _SIDE_EFFECTS & set(spec.tools):
        raise InvalidSpec(f"{where}: {node.agent} has side effects and cannot be retried.")
