"""The candidates of an agent's code: rows of its trace while it runs, branches of the conversation then."""

import pytest

from agents.api.events import RunEventType
from engine.conversations.tree import Verdict
from tests.fakes.fake_run_service import CATALOGUE, FakeRunService

CODES = (
    "def double(x):\n    return x\n",
    "def double(x):\n    return 3 * x\n",
    "def double(x):\n    return 2 * x\n",
)
RESULT = {
    "run": "run-0",
    "agent": "coder",
    "state": "ok",
    "findings": [],
    "output": {
        "diff": "--- /dev/null\n+++ b/double.py\n@@ -0,0 +1,2 @@\n+def double(x):\n+    return 2 * x\n"
    },
    "notes": [],
    "error": None,
}


@pytest.fixture
def service(monkeypatch):
    coder = {"kind": "agent", "name": "coder", "category": "execution", "description": "Writes."}
    monkeypatch.setattr(FakeRunService, "catalogue", lambda self: (*CATALOGUE, coder))
    return FakeRunService()


def tell(service, kind, **data):
    service.append("run-0", kind, agent="coder", width=1, **data)


def begin(service):
    tell(
        service,
        RunEventType.WIDTH_STARTED,
        goal="double",
        candidates=4,
        checks=["parses", "examples"],
    )
    write(service, 0, passed=False, detail="`>>> double(2)`: got 2, wanted 4")


def write(service, number, *, passed, detail, same_as=None):
    tell(
        service, RunEventType.CANDIDATE_WRITTEN, candidate=number, temperature=0.2 * number, round=0,
        code=CODES[number], tokens=12, same_as=same_as,
    )  # fmt: skip
    tell(
        service,
        RunEventType.CANDIDATE_CHECKED,
        candidate=number,
        check="parses",
        passed=True,
        detail="",
    )
    tell(
        service,
        RunEventType.CANDIDATE_CHECKED,
        candidate=number,
        check="examples",
        passed=passed,
        detail=detail,
    )


def finish(service, chosen=2):
    write(service, 1, passed=False, detail="`>>> double(2)`: got 6, wanted 4")
    write(service, 2, passed=True, detail="3 of 3 examples pass.")
    tell(
        service, RunEventType.CANDIDATE_CHOSEN, candidate=chosen, verified=chosen is not None,
        decided_by="examples", reason="It passes 3 of 3 examples.", stopped=1, diff=RESULT["output"]["diff"],
    )  # fmt: skip
    service.results["run-0"] = RESULT
    service.append("run-0", RunEventType.RUN_STATE, state="ok")


async def test_the_candidates_are_branches_with_their_verdicts(screen, service):
    async with screen("It triples.", run_service=service, size=(150, 44)) as ui:
        await ui.ask("@coder : write double")
        await ui.until(lambda: ui.session.path(), "the exchange")
        begin(service)
        finish(service)
        await ui.shown(
            "Candidate 3 of 3 was chosen: It passes 3 of 3 examples.",
            "Candidate 1 fails examples: >>> double(2): got 2, wanted 4",
            "✓ passed",
            "◀ 1/3 ▶",
        )
        place = ui.session.head
        tree = ui.session.tree
        siblings = tree.siblings(place)
        assert siblings[0] == place
        assert [tree[one].finish for one in siblings] == [
            Verdict.PASSED, Verdict.FAILED, Verdict.FAILED,
        ]  # fmt: skip
        # The rows of the branch tree have the glyphs.
        await ui.until(lambda: ui.text.count("└ ✗") == 1, "the tree")
        assert "├ ✓" in ui.text.replace("▸", "")
        # One can go to another one, and continue from it.
        await ui.press("shift+tab", "l")
        await ui.shown("Candidate 1 of 3", "got 2, wanted 4", "return x", "✗ failed", "◀ 2/3 ▶")
        assert ui.session.head == siblings[1]
        await ui.press("c")
        await ui.shown("Candidate 1 of 3")
        await ui.press("escape")
        await ui.ask("Why is it wrong?")
        await ui.answered()
        await ui.shown("It triples.")
        assert ui.session.path()[1].id == siblings[1]
        prompt = ui.client.detokenize(ui.client.requests[-1].prompt_ids)
        assert "got 2, wanted 4" in prompt


async def test_a_restart_has_the_candidates(screen, service):
    async with screen(run_service=service) as ui:
        await ui.ask("@coder : write double")
        await ui.until(lambda: ui.session.path(), "the exchange")
        begin(service)
        finish(service)
        await ui.shown("✓ passed")
    async with screen() as ui:
        await ui.shown("✓ passed", "◀ 1/3 ▶")
        await ui.press("shift+tab", "l")
        await ui.shown("✗ failed")


async def test_no_candidate_is_chosen(screen, service):
    async with screen(run_service=service) as ui:
        await ui.ask("@coder : write double")
        await ui.until(lambda: ui.session.path(), "the exchange")
        begin(service)
        finish(service, chosen=None)
        await ui.shown("✗ failed", "◀ 1/4 ▶")


async def test_the_trace_has_the_candidates_while_they_are_written(screen, service):
    async with screen(run_service=service) as ui:
        await ui.ask("@coder : write double")
        await ui.until(lambda: ui.session.path(), "the exchange")
        begin(service)
        await ui.press("f4", "j", "enter")
        await ui.shown(
            "1 of at most 4 written: double", "✗ 1  fails examples", "⋯ 2  being written"
        )
        finish(service)
        await ui.shown(
            "3 of 3 chosen, decided by examples", "✓ 3  passes parses, examples", "chosen"
        )


async def test_the_candidates_of_a_conversation_that_is_not_open(screen, service):
    async with screen(run_service=service) as ui:
        first = ui.session.tree_id
        await ui.ask("@coder : write double")
        await ui.until(lambda: ui.session.path(), "the exchange")
        await ui.press("ctrl+n")
        begin(service)
        finish(service)
        await ui.settled()
        await ui.app.actions.conversations.open(first)
        await ui.shown("✓ passed", "◀ 1/3 ▶")
