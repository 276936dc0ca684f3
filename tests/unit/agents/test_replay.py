"""A recorded run replays with the recorded answers and gives the same events."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from agents import Cluster
from agents.api.agent_spec import AgentSpec
from agents.api.budget import Budget
from agents.api.errors import InvalidTask
from agents.api.events import RunEvent, RunEventType
from agents.model.recorded_session import RecordedSession
from agents.outputs.answer import Answer
from agents.plugins.registry import Registry, load_registry
from agents.roster.roster import Roster
from agents.runs.approvals import Approvals
from agents.service.recording import Recording, read_recording, write_recording
from agents.service.replay import first_difference, replay
from agents.specs.packaged import packaged_agents
from agents.steps.model_phase import StepsPhase
from agents.tools.tool import Effect, Tool, ToolOutput
from agents.tools.write import WRITE
from tests.fakes.scripted_client import ScriptedClient
from tests.unit.agents.golden.scenarios import ABLE, script_of
from tests.unit.agents.golden.test_golden_scenarios import says_yes
from tests.unit.agents.roster_cases.cases import CASES

BUDGET = Budget(tokens=200_000)


class Nothing(BaseModel):
    pass


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(enabled=())


async def record(key, registry, folder, target):
    """Run an agent on its seeded input with a scripted model, and record it."""
    case = CASES[key]
    for path, text in case.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    spec = packaged_agents()[key]
    form = registry.outputs[spec.output_schema]
    session = RecordedSession(ScriptedClient(script_of(key, form), scores=says_yes))
    session.recording = True
    phase = StepsPhase(session, tuple(registry.tools.values()), profile=ABLE)
    events = []
    cluster = Cluster(registry=registry, roster=Roster({key: spec}), model=phase, mode="auto")
    result = await cluster.run(
        key,
        [folder],
        task=case.task,
        document=case.document,
        budget=BUDGET,
        on_start=lambda run: run.log.follow(events.append),
    )
    write_recording(
        target,
        Recording(
            key=key,
            budget=BUDGET,
            paths=(str(folder),),
            task=case.task,
            document=case.document,
            mode="auto",
            model=session.identity(),
            profile=replace(ABLE, model=session.identity()),
            events=events,
            answers=session.answers,
            result=dict(result.fields()),
        ),
    )
    return Roster({key: spec})


@pytest.mark.parametrize("key", ["debugger", "injection_scanner", "type_safety"])
async def test_a_recorded_run_replays_with_the_same_events(key, registry, tmp_path):
    files = tmp_path / "files"
    roster = await record(key, registry, files, tmp_path / "record")
    recording = read_recording(tmp_path / "record")
    assert any(one.type is RunEventType.BUDGET for one in recording.events)
    client = ScriptedClient()  # has no script: every answer is the recording's
    events = await replay(recording, registry, roster, client)
    assert first_difference(recording.events, events) is None
    assert client.requests == []
    for changed in files.rglob("*.py"):
        text = changed.read_text().replace("import", "import  ", 1)
        changed.write_text(text.replace("return", "return  ", 1) + "\neval(input())\n")
    difference = first_difference(
        recording.events, await replay(recording, registry, roster, client)
    )
    assert difference is not None
    assert difference.recorded != difference.replayed


def writing_agent(registry, paths):
    """A cluster's parts: an agent that writes files, each after an approval."""

    async def writer(task, context):
        for path in paths:
            try:
                await context.tool("write", path=path, content="x\n")
            except Exception as error:
                context.note(str(error))
        return Answer(text="done")

    own = Registry(tools={"write": WRITE}, outputs=registry.outputs, procedures={"writer": writer})
    spec = AgentSpec("writer", "execution", "Writes.", "You write.", ("write",), (), "Answer")
    return own, Roster({"writer": spec})


async def test_a_replay_answers_approvals_and_writes_nothing(registry, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    own, roster = writing_agent(registry, ("a.txt", "b.txt"))
    approvals = Approvals()
    approvals.on_change(
        lambda: [
            approvals.decide(
                one.id, "once" if one.target == "a.txt" else "deny", reason="not this one"
            )
            for one in approvals.pending
        ]
    )
    events = []
    cluster = Cluster(registry=own, roster=roster, approvals=approvals)
    await cluster.run("writer", [folder], on_start=lambda run: run.log.follow(events.append))
    assert (folder / "a.txt").exists()
    assert not (folder / "b.txt").exists()
    (folder / "a.txt").unlink()
    recording = Recording(
        "writer", roster.get("writer").budget, (str(folder),), has_approver=True, events=events
    )
    write_recording(tmp_path / "record", recording)
    again = await replay(read_recording(tmp_path / "record"), own, roster, None)
    assert first_difference(recording.events, again) is None
    assert any("not this one" in str(one.data) for one in again)
    assert list(folder.iterdir()) == []
    other, _ = writing_agent(registry, ("a.txt",))
    fewer = await replay(recording, other, roster, None)
    assert first_difference(recording.events, fewer).number == 6


async def test_what_is_no_recording_is_refused(registry, tmp_path):
    with pytest.raises(InvalidTask, match="no recording"):
        read_recording(tmp_path)
    write_recording(tmp_path, Recording("x", BUDGET))
    (tmp_path / "trajectory.jsonl").write_text("{}\n")
    with pytest.raises(InvalidTask, match="damaged"):
        read_recording(tmp_path)
    (tmp_path / "request.json").write_text('{"version": 99}')
    with pytest.raises(InvalidTask, match="another version"):
        read_recording(tmp_path)
    with_model = Recording("x", BUDGET, model="another")
    with pytest.raises(InvalidTask, match="another model"):
        await replay(with_model, registry, Roster({}), ScriptedClient())


async def test_a_run_with_mcp_servers_is_not_replayed(registry):
    """A recording must not approve what a server offers today."""
    spec = AgentSpec("caller", "audit", "", "", (), (), "Answer", mcp_servers=("any",))
    with pytest.raises(InvalidTask, match="it uses MCP servers"):
        await replay(Recording("caller", BUDGET), registry, Roster({"caller": spec}), None)


async def test_a_replay_keeps_the_memory_and_refuses_recalled_ones(registry, tmp_path):
    called = []

    async def remember(arguments, context):
        called.append(arguments)
        return ToolOutput("stored")

    async def keeper(task, context):
        return Answer(text=(await context.tool("memory"))["text"])

    tool = Tool("memory", "Remember.", Nothing, frozenset({Effect.READ}), remember)
    own = Registry(tools={"memory": tool}, outputs=registry.outputs, procedures={"keeper": keeper})
    spec = AgentSpec("keeper", "execution", "Keeps.", "You keep.", ("memory",), (), "Answer")
    roster, events = Roster({"keeper": spec}), []
    await Cluster(registry=own, roster=roster).run(
        "keeper", on_start=lambda run: run.log.follow(events.append)
    )
    recording = Recording("keeper", spec.budget, events=events)
    assert first_difference(events, await replay(recording, own, roster, None)) is None
    assert len(called) == 1
    recalled = RunEvent(9, 0.0, "r", RunEventType.MEMORY, data={"action": "recalled"})
    with pytest.raises(InvalidTask, match="recalled memories"):
        await replay(replace(recording, events=[*events, recalled]), own, roster, None)
