"""Agents on the screen: started from the prompt, watched, approved; results enter the conversation."""

import pytest

from agents.api.agent_spec import Capability
from agents.api.events import RunEventType
from agents.model.profile import CapabilityProfile
from agents.runs.approvals import ApprovalRequest
from agents.tools.tool import Effect
from app.tui.view.approval_lines import build_approval
from app.tui.widgets import agents_pane
from app.tui.widgets.approval import ApprovalScreen
from app.tui.widgets.quiet_time import QUIET_S
from engine.conversations.tree import NodeKind
from tests.fakes.fake_run_service import FakeRunService

FINDING = {
    "id": "f1", "file": "src/app.py", "line": 7, "end_line": 7, "rule": "B602", "severity": "high",
    "cwe": 78, "reference": None, "confidence": 0.9, "message": "A shell runs user input.",
    "evidence": "subprocess.run(cmd, shell=True)", "source": "detector", "detector": "bandit",
}  # fmt: skip
RESULT = {
    "run": "run-0",
    "agent": "security_audit",
    "state": "ok",
    "findings": [FINDING],
    "output": {"cannot_do": ""},
    "notes": ["mypy is not installed."],
    "error": None,
}


def review(service: FakeRunService) -> str:
    """A pipeline with an agent in each state."""
    from agents.service.run_request import RunRequest

    run = service.start(RunRequest("pipeline", "code-review", task="review src"))

    def add(kind, node, agent, **data):
        service.append(run, kind, node=node, agent=agent, **data)

    add(RunEventType.NODE_STATE, "syntax", "syntax_audit", state="ok")
    add(RunEventType.NODE_STATE, "logic", "logic_flaw", state="running")
    add(RunEventType.STEP_STARTED, "logic", "logic_flaw", step=1)
    add(RunEventType.ACTION_CHOSEN, "logic", "logic_flaw", step=1, thought="Look at the file.",
        action="read", input={"path": "src/app.py"})  # fmt: skip
    add(RunEventType.TOOL_STARTED, "logic", "logic_flaw", tool="read", arguments="src/app.py")
    add(RunEventType.TOOL_FINISHED, "logic", "logic_flaw", tool="read", failed=False, text="x = 1")
    add(RunEventType.STEP_FINISHED, "logic", "logic_flaw", start=0.0, end=0.5, n_prompt=900,
        n_cached=832, n_gen=40)  # fmt: skip
    add(RunEventType.BUDGET, "logic", "logic_flaw", computed_tokens=108, cached_tokens=832)
    add(RunEventType.FINDING, "logic", "logic_flaw", **FINDING)
    add(RunEventType.NODE_STATE, "fix", "patch_applier", state="running")
    add(RunEventType.APPROVAL_REQUESTED, "fix", "patch_applier", tool="edit", target="src/app.py")
    add(RunEventType.NODE_STATE, "types", "type_safety", state="failed", reason="mypy crashed")
    service.pending.append(approval())
    service.changed()
    return run


def approval(number: int = 1) -> ApprovalRequest:
    return ApprovalRequest(
        f"approval-{number}", "run-0", "patch_applier", "edit", '{"path": "src/app.py"}',
        "src/app.py", frozenset({Effect.WRITE}), "/home/me/project", "the tool has side effects",
    )  # fmt: skip


@pytest.fixture
def service():
    return FakeRunService()


async def test_a_message_that_calls_an_agent_starts_it_and_gets_its_result(
    screen, service, tmp_path
):
    folder = tmp_path / "src"
    folder.mkdir()
    async with screen("never", run_service=service) as ui:
        text = f"@security_audit {folder}: look well"
        await ui.ask(text)
        await ui.until(lambda: service.requests)
        (request,) = service.requests
        assert (request.kind, request.name, request.task) == (
            "agent",
            "security_audit",
            "look well",
        )
        assert request.paths == (str(folder),)
        service.results["run-0"] = RESULT
        service.append("run-0", RunEventType.RUN_STATE, state="ok")
        await ui.shown("src/app.py:7", "A shell runs user input.")
        asked, answered = ui.session.path()[-2:]
        assert (asked.text, answered.kind) == (text, NodeKind.ASSISTANT)
        assert answered.model == "security_audit"
        ui.session.branches.fork(answered.id)  # it is a message like any other


async def test_the_messages_of_a_run_take_their_place_when_it_starts(screen, service):
    async with screen("An answer.", run_service=service) as ui:
        await ui.ask("@security_audit")
        await ui.shown("@security_audit", "security_audit is running")
        place = ui.session.path()[-1]
        await ui.ask("meanwhile")
        await ui.answered()
        await ui.shown("An answer.")
        service.results["run-0"] = RESULT
        service.append("run-0", RunEventType.RUN_STATE, state="ok")
        await ui.shown("A shell runs user input.")
        await ui.gone("⋯ security_audit is running")
        path = ui.session.path()
        assert [node.text for node in path[:1] + path[2:]] == [
            "@security_audit", "meanwhile", "An answer.",
        ]  # fmt: skip
        assert path[1].id == place.id
        assert "A shell runs user input." in path[1].text
        assert ui.text.index("A shell runs") < ui.text.index("meanwhile")


async def test_a_run_that_starts_during_an_answer_takes_its_place_after_it(screen, service):
    async with screen("An answer.", run_service=service) as ui:
        await ui.ask("question")
        await ui.ask("@security_audit")
        await ui.until(lambda: service.requests)
        assert len(ui.session.path()) == 2
        await ui.answered()
        await ui.shown("An answer.", "security_audit is running")


async def test_a_result_comes_while_another_conversation_is_open(screen, service):
    async with screen("never", run_service=service) as ui:
        first = ui.session.tree_id
        await ui.ask("@security_audit")
        await ui.until(lambda: ui.session.path())
        await ui.press("ctrl+n")
        service.results["run-0"] = RESULT
        service.append("run-0", RunEventType.RUN_STATE, state="ok")
        await ui.settled()
        assert not ui.session.path()
        await ui.app.actions.conversations.open(first)
        await ui.shown("A shell runs user input.")


async def test_a_run_that_the_app_did_not_wait_for_leaves_no_running_row(screen):
    async with screen("never", run_service=FakeRunService()) as ui:
        await ui.ask("@security_audit")
        await ui.shown("security_audit is running")
    async with screen("never", run_service=FakeRunService()) as ui:
        await ui.shown("@security_audit")
        assert "⋯" not in ui.text


async def test_a_message_that_names_no_agent_is_sent(screen, service):
    async with screen("An answer.", run_service=service) as ui:
        await ui.ask("@nobody hello")
        await ui.answered()
        assert not service.requests


async def test_the_pane_shows_runs_agents_and_a_trace(screen, service):
    async with screen(run_service=service, size=(139, 36)) as ui:
        review(service)
        await ui.press("f4")
        await ui.shown("code-review", "1 waiting for approval", "mypy crashed", "patch_applier")
        await ui.shown("832 saved by sharing", "edit src/app.py")
        assert ui.text.index("type_safety") < ui.text.index("syntax_audit")
        await ui.press("j", "j", "j", "enter")
        await ui.shown("step 1     read", "1 high", "A shell runs user input.", "832 cached")
        await ui.press("k", "k", "enter")
        await ui.shown("thought", "Look at the file.", "observed", "x = 1")
        await ui.press("z")
        await ui.gone("Look at the file.")
        await ui.press("Z")
        await ui.shown("Look at the file.", "A shell runs user input.")
        await ui.press("Z")
        await ui.gone("A shell runs user input.")
        await ui.press("escape")
        await ui.gone("step 1     read")
        await ui.press("O")
        await ui.until(lambda: ui.text.rindex("syntax_audit") < ui.text.rindex("patch_applier"))
        await ui.press("F", *"syntax", "enter")
        await ui.gone("type_safety")


async def test_the_pane_says_what_the_model_is_used_for(screen, service, monkeypatch):
    profiles = [None, CapabilityProfile("m", {Capability.TEXT: 1.0}, outputs={"Plan": 1.0})]
    monkeypatch.setattr(agents_pane, "known_profile", lambda identity: profiles[0])
    async with screen(run_service=service, size=(139, 36)) as ui:
        await ui.press("f4")
        await ui.shown("not tested yet: the first agent that needs it tests it once")
        profiles.pop(0)  # a run has tested it
        run = review(service)
        service.append(run, RunEventType.RUN_STATE, state="ok")
        await ui.shown("short texts; writes Plan")
        await ui.gone("not tested yet")


async def test_an_approval_never_takes_the_focus_and_typing_answers_nothing(screen, service):
    async with screen(run_service=service) as ui:
        await ui.type("hel")
        review(service)
        await ui.until(lambda: any("waits for your approval" in one for one in ui.toasts))
        await ui.type("lo yyy")
        assert ui.prompt.text == "hello yyy"
        assert not service.decisions
        await ui.press("shift+tab", "a")
        await ui.until(lambda: isinstance(ui.app.screen, ApprovalScreen))
        clock = ui.app.screen._quiet._clock = ui.clock
        ui.app.screen._quiet.begin()
        for _ in range(20):  # somebody types on, 15 keys a second
            clock.now += 1 / 15
            await ui.press("y")
        assert not service.decisions
        clock.now += QUIET_S + 0.1
        await ui.press("space", "enter")
        assert not service.decisions
        await ui.press("y")
        await ui.until(lambda: service.decisions == [("approval-1", "once")])


async def test_the_approvals_pane_opens_a_call_and_denies_it(screen, service):
    async with screen(run_service=service) as ui:
        review(service)
        await ui.press("f8")
        await ui.shown("Approvals", "edit (changes files)")
        await ui.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ApprovalScreen))
        ui.app.screen._quiet._clock = lambda: float("inf")
        await ui.shown("patch_applier wants to call edit", "/home/me/project")
        await ui.press("n")
        await ui.shown("why not?")
        await ui.type("y not this file")
        await ui.press("enter")
        await ui.until(lambda: service.decisions == [("approval-1", "deny")])
        assert service.reasons == ["y not this file"]
        await ui.until(lambda: ui.app.layout.pane == "chat", "the chat: no call waits any more")


async def test_leaving_the_reason_ignores_what_is_still_typed(screen, service):
    async with screen(run_service=service) as ui:
        review(service)
        await ui.press("f8", "enter")
        await ui.until(lambda: isinstance(ui.app.screen, ApprovalScreen))
        dialog = ui.app.screen
        clock = dialog._quiet._clock = ui.clock
        clock.now += QUIET_S + 0.1
        await ui.press("n")
        await ui.type("no")
        await ui.press("escape", "y", "t")
        assert not service.decisions
        assert ui.app.screen is dialog
        clock.now += QUIET_S + 0.1
        await ui.press("t")
        await ui.until(lambda: service.decisions == [("approval-1", "always")])


async def test_a_dialog_closes_when_somebody_else_answers(screen, service):
    async with screen(run_service=service) as ui:
        review(service)
        await ui.press("f8", "enter")
        await ui.until(lambda: isinstance(ui.app.screen, ApprovalScreen))
        service.decide("approval-1", "once")
        await ui.until(lambda: not isinstance(ui.app.screen, ApprovalScreen))
        assert any("answered elsewhere" in one for one in ui.toasts)
        assert service.decisions == [("approval-1", "once")]


async def test_runs_are_stopped_by_keys(screen, service):
    async with screen(run_service=service) as ui:
        review(service)
        await ui.press("f4", "s", "n")
        assert not service.cancelled
        await ui.press("s", "y")
        await ui.until(lambda: service.cancelled == ["run-0"])
        await ui.press("S", "space", "enter")
        assert service.cancelled == ["run-0"]
        await ui.press("S", "y")
        await ui.until(lambda: service.cancelled == ["run-0", "run-0"])


async def test_commands_run_agents_and_say_what_is_unknown(screen, service):
    async with screen(run_service=service) as ui:
        await ui.ask("/agents code-review")
        await ui.until(lambda: service.requests)
        assert service.requests[0].kind == "pipeline"
        await ui.ask("/agents nobody")
        await ui.until(lambda: any("no agent or pipeline nobody" in one for one in ui.toasts))
        await ui.ask("/approve")
        await ui.until(lambda: any("No agent waits" in one for one in ui.toasts))
        await ui.ask("/agents")
        await ui.shown("Agents", "code-review")
        assert service.requests[0].conversation == ui.session.tree_id


async def test_a_replay_runs_no_agents(screen):
    async with screen() as ui:
        await ui.press("f4")
        await ui.shown("A replay runs no agents.")


async def test_a_repair_is_started_like_an_agent_and_asks_with_its_diff(screen, service, tmp_path):
    folder = tmp_path / "src"
    folder.mkdir()
    async with screen("never", run_service=service) as ui:
        await ui.ask(f"/agents repair {folder}")
        await ui.until(lambda: service.requests)
        (request,) = service.requests
        assert (request.kind, request.name, request.paths) == ("repair", "repair", (str(folder),))
        diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = eval(y)\n+x = ast.literal_eval(y)\n"
        service.pending.append(
            ApprovalRequest(
                "approval-1", "run-0", "repair", "apply_repair", diff, "1 files",
                frozenset({Effect.WRITE}), str(tmp_path), "it changes your files", diff=diff,
            )
        )  # fmt: skip
        service.changed()
        lines = [
            "".join(span.text for span in line) for line in build_approval(service.pending[0], 60)
        ]
        assert "-x = eval(y)" in lines
        assert "+x = ast.literal_eval(y)" in lines
