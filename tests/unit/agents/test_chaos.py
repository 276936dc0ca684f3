"""Runs that are killed, cancelled, slow, or without room on the disk."""

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.api.errors import InvalidTask
from agents.api.events import RunEventType, RunState
from agents.outputs.answer import Answer
from agents.pipelines.pipeline_file import parse_pipeline
from agents.pipelines.pipeline_run import Means, PipelineRun
from agents.plugins.registry import Registry
from agents.procedures.procedure import AgentTask
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.runs.run_store import RunStore
from agents.tools.tool import Effect, Tool
from tests.fakes.full_disk import full_disk
from tests.unit.agents.chaos_run import cluster_in
from tests.unit.agents.conftest import broken, echo, endless, spec


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.agents.chaos_run", str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, "the process ended"


@pytest.fixture
def at_the_gate(tmp_path):
    """A process whose run has finished its first node and waits in the second one; its run."""
    process = start(tmp_path)
    run = process.stdout.readline().strip()
    wait_for(tmp_path / "at-the-gate", process)
    yield process, run
    process.kill()
    process.wait()


async def test_a_killed_run_goes_on_at_its_first_unfinished_node(at_the_gate, tmp_path):
    process, run = at_the_gate
    process.kill()
    assert process.wait() == -9
    (tmp_path / "open").touch()
    result = await cluster_in(tmp_path).resume(run)
    assert result.state is RunState.OK
    assert result.result.output.text == "after through"
    assert (tmp_path / "calls").read_text() == "echo:go\necho:after through\n"
    assert not list(tmp_path.glob("*.lock"))


async def test_a_run_is_not_resumed_while_another_process_works_on_it(at_the_gate, tmp_path):
    process, run = at_the_gate
    with pytest.raises(InvalidTask, match="at work in another process"):
        await cluster_in(tmp_path).resume(run)
    (tmp_path / "open").touch()
    assert process.communicate()[0].strip() == "ok"
    with pytest.raises(InvalidTask, match="nothing to resume"):
        await cluster_in(tmp_path).resume(run)


def test_of_two_processes_that_resume_a_run_one_is_refused(at_the_gate, tmp_path):
    process, run = at_the_gate
    process.kill()
    process.wait()
    (tmp_path / "at-the-gate").unlink()
    first = start(tmp_path, run)
    wait_for(tmp_path / "at-the-gate", first)
    second = start(tmp_path, run)
    assert "refused" in second.communicate()[0]
    (tmp_path / "open").touch()
    assert first.communicate()[0].split() == [run, "ok"]
    assert (tmp_path / "calls").read_text().count("echo:after through") == 1


@pytest.mark.parametrize("at", range(12))
async def test_a_run_is_cancelled_at_any_event(at, registry, roster):
    graph = parse_pipeline(
        "name: toy\ndescription: A toy.\noutput: last\nnodes:\n  first: {agent: echo}\n"
        "  beside: {agent: echo}\n  last: {agent: echo, needs: [first, beside]}\n",
        "toy.yaml",
    )
    cancelled = asyncio.Event()
    run = PipelineRun(
        graph, AgentTask("x"), Means(registry, roster, {}, Approvals()), cancelled=cancelled
    )
    run.log.follow(lambda event: event.sequence == at and cancelled.set())
    result = await run.execute()
    assert result.state is RunState.CANCELLED
    assert all(state.finished for state in run.states.values())
    assert one_final_state_each(run)


async def test_a_run_is_cancelled_while_a_call_waits_for_its_approval():
    approvals, cancelled = Approvals(), asyncio.Event()
    approvals.on_change(lambda: approvals.pending and cancelled.set())
    result = await pressing(approvals).run("presser", cancelled=cancelled, mode="ask")
    assert result.state is RunState.CANCELLED
    assert approvals.pending == ()


class Nothing(BaseModel):
    pass


def pressing(approvals, *, timeout_s=30.0):
    """A cluster whose agent presses a button that never comes back."""

    async def never(arguments, context):
        await asyncio.Event().wait()

    async def presser(task, context):
        output = await context.tool("button")
        return Answer(text=output["text"])

    effects = frozenset({Effect.WRITE})
    button = Tool("button", "Press.", Nothing, effects, never, timeout_s=timeout_s)
    agent = AgentSpec("presser", "execution", "Presses.", "Press.", ("button",), (), "Answer")
    registry = Registry(
        tools={"button": button}, outputs={"Answer": Answer}, procedures={"presser": presser}
    )
    return Cluster(
        registry=registry, roster=Roster({"presser": agent}), approvals=approvals, mode="auto"
    )


async def test_a_slow_tool_is_stopped_and_the_run_goes_on():
    result = await pressing(Approvals(), timeout_s=0.01).run("presser")
    assert result.state is RunState.OK
    assert result.output.text == "button was stopped after 0.01 s."


async def test_nobody_who_answers_is_a_denial():
    approvals = Approvals(timeout_s=0.01)
    cluster = pressing(approvals)
    result = await cluster.run("presser", mode="ask")
    assert result.state is RunState.DENIED
    assert "nobody answered within 0.01 s" in result.error
    assert approvals.pending == ()


async def test_a_full_disk_ends_saving_but_not_the_run(registry, roster, tmp_path):
    (tmp_path / "toy.yaml").write_text(
        "name: toy\ndescription: A toy.\noutput: last\nnodes:\n  first: {agent: echo}\n"
        "  last: {agent: echo, needs: [first]}\n"
    )
    store = RunStore(tmp_path / "agents.db")
    cluster = Cluster(registry=registry, roster=roster, store=store, pipeline_folders=[tmp_path])
    runs = []
    with full_disk(tmp_path / "agents.db"):
        result = await cluster.run_pipeline("toy", task="x" * 3_000, on_start=runs.append)
    assert result.state is RunState.OK
    errors = [one for one in runs[0].log.since(0) if one.type is RunEventType.ERROR]
    assert len(errors) == 1
    assert "not saved any more" in errors[0].data["text"]
    again = await cluster.run_pipeline("toy", task="there is room again")
    assert store.get(again.run).state is RunState.OK
    store.close()


def test_a_run_store_on_a_full_disk_is_refused_with_a_sentence(tmp_path):
    with full_disk(tmp_path / "agents.db"), pytest.raises(InvalidTask, match="cannot be written"):
        RunStore(tmp_path / "agents.db")


def one_final_state_each(run):
    """Whether the log tells exactly one final state of every node."""
    told = [
        event.node
        for event in run.log.since(0)
        if event.type is RunEventType.NODE_STATE and RunState(event.data["state"]).finished
    ]
    return sorted(told) == sorted(run.states)


async def crashing(task, context):
    raise RuntimeError("a bug")


NODES = st.lists(
    st.tuples(
        st.sets(st.integers(0, 11), max_size=4),
        st.booleans(),
        st.sampled_from(["echo", "echo", "broken", "crashing", "endless"]),
    ),
    min_size=1,
    max_size=12,
)


@given(NODES, st.none() | st.integers(0, 40), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_graph_ends_with_every_node_in_one_final_state(shape, cancel_at, concurrency):
    """Random graphs with failures, mistakes, timeouts and a cancellation at a random event."""
    nodes = "".join(
        f"  n{at}: {{agent: {agent}, required: {str(required).lower()}, timeout: 0.01, "
        f"needs: [{', '.join(f'n{need}' for need in sorted(needs) if need < at)}]}}\n"
        for at, (needs, required, agent) in enumerate(shape)
    )
    graph = parse_pipeline(
        f"name: toy\ndescription: x\noutput: n0\nconcurrency: {concurrency}\nnodes:\n{nodes}", "toy"
    )
    procedures = {"echo": echo, "broken": broken, "crashing": crashing, "endless": endless}
    registry = Registry(outputs={"Answer": Answer}, procedures=procedures)
    roster = Roster({key: spec(key) for key in procedures})

    async def run_it():
        cancelled = asyncio.Event()
        run = PipelineRun(
            graph, AgentTask("x"), Means(registry, roster, {}, Approvals()), cancelled=cancelled
        )
        run.log.follow(lambda event: event.sequence == cancel_at and cancelled.set())
        return run, await run.execute()

    run, result = asyncio.run(run_it())
    assert result.state.finished
    assert all(state.finished for state in run.states.values())
    assert one_final_state_each(run)
    bad = {name for name, state in run.states.items() if state is not RunState.OK}
    for name, node in graph.nodes.items():
        blocked = [need for need in node.needs if need in bad and graph.nodes[need].required]
        if blocked:
            assert run.states[name] in (RunState.SKIPPED, RunState.CANCELLED)
        elif run.states[name] is RunState.OK:
            said = " ".join(run.results[name].notes)
            assert all(f"The result of {need} is missing" in said for need in bad & set(node.needs))
    if cancel_at is None:
        failed = any(graph.nodes[n].required for n in bad if run.states[n] is not RunState.SKIPPED)
        assert (result.state is RunState.OK) == (not failed)
