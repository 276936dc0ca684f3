"""Pipelines over toy agents: order, states, gaps, resuming."""

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import Cluster
from agents.api.errors import InvalidSpec, InvalidTask, UnknownAgent
from agents.api.events import RunEventType, RunState
from agents.pipelines.pipeline import check_pipeline
from agents.pipelines.pipeline_file import load_pipelines, parse_pipeline
from agents.pipelines.pipeline_run import Means, PipelineRun
from agents.pipelines.templates import fill
from agents.plugins.registry import load_registry
from agents.procedures.procedure import AgentTask
from agents.runs.approvals import Approvals
from agents.runs.run_store import RunStore
from agents.workspace.workspace import Workspace


def pipeline(nodes: str, *, output: str = "last", head: str = ""):
    text = f"name: toy\ndescription: A toy.\noutput: {output}\n{head}nodes:\n{nodes}"
    return parse_pipeline(text, "toy.yaml")


@pytest.fixture
def run(registry, roster):
    def start(graph, task=None, **more):
        check_pipeline(graph, roster)
        means = Means(registry, roster, more.pop("pipelines", {}), Approvals(has_approver=False))
        return PipelineRun(graph, task or AgentTask("hello"), means, **more)

    return start


async def test_outputs_flow_along_the_edges(run):
    graph = pipeline(
        "  first: {agent: echo}\n"
        "  last: {agent: echo, needs: [first], task: 'got {first.text} for {task}'}\n"
    )
    result = await run(graph).execute()
    assert result.state is RunState.OK
    assert result.result.output.text == "got hello for hello"


async def test_a_failed_required_node_skips_its_dependants_and_fails_the_run(run):
    graph = pipeline(
        "  first: {agent: broken}\n  middle: {agent: echo, needs: [first]}\n"
        "  beside: {agent: echo}\n  last: {agent: echo, needs: [middle]}\n"
    )
    started = run(graph)
    result = await started.execute()
    assert (result.state, result.error) == (RunState.FAILED, "first: There is nothing to do.")
    assert started.states == {
        "first": RunState.FAILED,
        "beside": RunState.OK,
        "middle": RunState.SKIPPED,
        "last": RunState.SKIPPED,
    }


async def test_an_optional_failure_is_a_gap_that_the_dependant_mentions(run):
    graph = pipeline(
        "  first: {agent: broken, required: false}\n  last: {agent: echo, needs: [first]}\n"
    )
    result = await run(graph).execute()
    assert result.state is RunState.OK
    assert result.result.notes == ("The result of first is missing: There is nothing to do.",)


async def test_a_node_notes_what_its_own_detectors_said(run):
    graph = pipeline(
        "  first: {agent: unlucky}\n  beside: {agent: words, needs: [first]}\n"
        "  last: {agent: echo, needs: [beside]}\n"
    )
    started = run(graph, AgentTask("hello", Workspace.of_texts({"a.txt": "bad\n"})))
    await started.execute()
    notes = {name: result.notes for name, result in started.results.items()}
    assert len(notes["first"]) == 1
    assert notes["beside"] == notes["last"] == ()


async def test_conditions_decide_by_findings(run):
    text = (
        "  check: {agent: words}\n"
        "  last: {agent: echo, needs: [check], when: {node: check, findings: high}}\n"
    )
    clean = run(pipeline(text), AgentTask("x", Workspace.of_texts({"a.txt": "fine"})))
    await clean.execute()
    assert clean.states["last"] is RunState.SKIPPED
    dirty = run(pipeline(text), AgentTask("x", Workspace.of_texts({"a.txt": "bad"})))
    await dirty.execute()
    assert dirty.states["last"] is RunState.OK


async def test_findings_are_reduced_without_duplicates(run):
    graph = pipeline(
        "  one: {agent: words}\n  two: {agent: unlucky}\n"
        "  last: {reduce: findings, needs: [one, two]}\n"
    )
    result = await run(graph, AgentTask("", Workspace.of_texts({"a.txt": "bad"}))).execute()
    assert len(result.result.findings) == 1


async def test_a_node_that_takes_too_long_times_out(run):
    graph = pipeline("  last: {agent: endless, timeout: 0.05}\n")
    started = run(graph)
    result = await started.execute()
    assert result.state is RunState.FAILED
    assert started.states["last"] in (RunState.TIMED_OUT, RunState.EXHAUSTED)


async def test_the_time_budget_of_the_run_ends_it(run):
    graph = pipeline("  last: {agent: endless}\n", head="budget: {seconds: 0.05}\n")
    started = run(graph)
    result = await started.execute()
    assert result.state is RunState.TIMED_OUT
    assert started.states["last"] is RunState.CANCELLED


async def test_cancelling_ends_all_nodes(run):
    graph = pipeline("  first: {agent: echo}\n  last: {agent: echo, needs: [first]}\n")
    cancelled = asyncio.Event()
    started = run(graph, cancelled=cancelled)
    started.log.follow(
        lambda event: (
            event.node == "first"
            and event.type is RunEventType.NODE_STATE
            and event.data["state"] == "ok"
            and cancelled.set()
        )
    )
    result = await started.execute()
    assert result.state is RunState.CANCELLED
    assert all(state.finished for state in started.states.values())


async def test_a_router_chooses_a_pipeline(run, roster):
    inner = pipeline("  last: {agent: echo, task: 'inner {task}'}\n")
    outer = pipeline("  last: {pipeline: toy}\n")
    result = await run(outer, pipelines={"toy": inner}).execute()
    assert result.result.output.text == "inner hello"
    deep = pipeline("  last: {pipeline: deep}\n")
    result = await run(pipeline("  last: {pipeline: deep}\n"), pipelines={"deep": deep}).execute()
    assert result.state is RunState.FAILED
    assert "nested 2 deep" in result.error


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("  last: {agent: nobody}\n", "no agent 'nobody'"),
        ("  last: {agent: echo, needs: [x]}\n", "needs x, which is no node"),
        ("  last: {agent: echo, needs: [b]}\n  b: {agent: echo, needs: [last]}\n", "cycle"),
        ("  last: {agent: echo, reduce: vote}\n", "exactly one of"),
        ("  last: {agent: echo, when: {node: b}}\n  b: {agent: echo}\n", "does not need"),
        ("  other: {agent: echo}\n", "its output last is no node"),
        ("  r: {agent: echo}\n  last: {pipeline: '{r.x}', needs: [r]}\n", "required node"),
    ],
)
def test_a_wrong_graph_is_refused(nodes, message, roster):
    with pytest.raises(InvalidSpec, match=message):
        check_pipeline(pipeline(nodes), roster)


@pytest.mark.parametrize("text", ["", "- 1", "name: x", "{", "name: [", "name: a\nwrong: 1", "\0"])
def test_a_wrong_file_is_refused(text):
    with pytest.raises(InvalidSpec, match=r"toy\.yaml"):
        parse_pipeline(text, "toy.yaml")


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_pipeline_or_refused(text):
    with contextlib.suppress(InvalidSpec):
        parse_pipeline(text, "x")


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 11)), st.booleans(), st.sampled_from(["echo", "broken"])),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_every_node_of_a_random_graph_finishes(shape):
    from agents.outputs.answer import Answer
    from agents.plugins.registry import Registry
    from agents.roster.roster import Roster
    from tests.unit.agents.conftest import broken, echo, spec

    nodes = "".join(
        f"  n{at}: {{agent: {agent}, required: {str(required).lower()}, "
        f"needs: [{', '.join(f'n{need}' for need in sorted(needs) if need < at)}]}}\n"
        for at, (needs, required, agent) in enumerate(shape)
    )
    graph = pipeline(nodes, output="n0")
    registry = Registry(outputs={"Answer": Answer}, procedures={"echo": echo, "broken": broken})
    roster = Roster({key: spec(key) for key in ("echo", "broken")})
    started = PipelineRun(graph, AgentTask("x"), Means(registry, roster, {}, Approvals()))
    result = asyncio.run(started.execute())
    for at, (needs, _, agent) in enumerate(shape):
        needed = [f"n{need}" for need in needs if need < at]
        blocked = any(
            started.states[need] is not RunState.OK and graph.nodes[need].required
            for need in needed
        )
        expected = RunState.FAILED if agent == "broken" else RunState.OK
        assert started.states[f"n{at}"] is (RunState.SKIPPED if blocked else expected)
    failed = any(
        state is RunState.FAILED and graph.nodes[name].required
        for name, state in started.states.items()
    )
    assert (result.state is RunState.FAILED) == failed


async def test_a_stored_run_goes_on_at_its_first_unfinished_node(registry, roster, tmp_path):
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "toy.yaml").write_text(
        "name: toy\ndescription: A toy.\noutput: last\nnodes:\n"
        "  first: {agent: echo}\n  last: {agent: echo, needs: [first], task: 'after {first}'}\n"
    )
    store = RunStore(tmp_path / "agents.db")
    calls = []
    real = registry.procedures["echo"]

    async def counted(task, context):
        calls.append(task.text)
        if len(calls) == 2:
            raise InvalidTask("killed")
        return await real(task, context)

    registry.procedures["echo"] = counted
    cluster = Cluster(registry=registry, roster=roster, store=store, pipeline_folders=[folder])
    failed = await cluster.run_pipeline("toy", task="go")
    assert failed.state is RunState.FAILED
    again = await cluster.resume(failed.run)
    assert again.state is RunState.OK
    assert calls == ["go", "after go", "after go"]
    assert again.result.output.text == "after go"
    with pytest.raises(InvalidTask, match="nothing to resume"):
        await cluster.resume(failed.run)
    with pytest.raises(InvalidTask, match="no run"):
        await cluster.resume("run-x")
    events = store.events(failed.run)
    assert [event.sequence for event in events] == list(range(len(events)))


async def test_an_unknown_pipeline_is_refused_with_a_near_match(registry, roster):
    cluster = Cluster(registry=registry, roster=roster)
    cluster.pipelines["toy"] = pipeline("  last: {agent: echo}\n")
    with pytest.raises(UnknownAgent, match="Did you mean toy"):
        await cluster.run_pipeline("toyy")


def test_templates_leave_unknown_references():
    values = {"task": "do it", "a": {"text": "x", "n": 3}, "b": {"n": 1}}
    assert fill("{task} {a} {a.n} {b} {c} {c.d} {", values) == 'do it x 3 {"n": 1} {c} {c.d} {'


def test_the_built_in_pipelines_are_these_ten():
    pipelines, problems = load_pipelines(load_registry().pipeline_folders)
    assert not problems
    assert sorted(pipelines) == [
        "code-review",
        "creative-write",
        "design-component",
        "extract-classify",
        "full-pipeline",
        "full-secure-design",
        "plan-execute-audit",
        "research-summarize",
        "research-write",
        "secure-code-review",
    ]
