"""Agents that write code, over a scripted model: the change, its checks in a copy, the diff, the approval."""

import json

import pytest

from agents import Cluster
from agents.api.agent_spec import Capability
from agents.api.budget import Budget
from agents.api.events import RunEventType
from agents.api.finding import Severity
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.runs.approvals import Approvals
from agents.sandbox.sandbox import SandboxUnavailable
from agents.steps.code import change_agreement
from agents.steps.model_phase import StepsPhase
from tests.fakes.scripted_client import ScriptedClient

PRICES = '''"""Prices."""

RATE = 0.2


def with_tax(price):
    """The price with tax.

    >>> with_tax(100)
    120.0
    """
    return price * (1 + RATE)


def total(prices):
    return sum(prices)
'''
TESTS = """from prices import total, with_tax


def test_total():
    assert total([1, 2]) == 3


def test_tax():
    assert with_tax(100) == 120
"""
ALL = dict.fromkeys(list(Capability)[1:], 1.0)
ADDED = "def total(prices, discount=0):\n    return sum(prices) - discount\n"


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "shop"
    (root / "tests").mkdir(parents=True)
    (root / "prices.py").write_text(PRICES)
    (root / "tests" / "test_prices.py").write_text(TESTS)
    (root / "conftest.py").write_text("")
    return root


class Runner:
    """A cluster with a scripted model, whose approvals are decided by tool."""

    def __init__(self, script, *, profile=None, **decisions):
        self.client = ScriptedClient(script)
        profile = profile or CapabilityProfile("m", ALL)
        self.approvals = Approvals(has_approver=True)
        self.asked = []
        self.decisions = decisions
        self.approvals.on_change(self._decide)
        phase = StepsPhase(ModelSession(self.client), profile=profile)
        self.cluster = Cluster(model=phase, approvals=self.approvals)
        self.events = []

    def _decide(self):
        for request in tuple(self.approvals.pending):
            if request.id not in [one.id for one in self.asked]:
                self.asked.append(request)
                self.approvals.decide(request.id, self.decisions.get(request.tool, "once"))

    async def run(self, key, root, task="", **more):
        def started(run):
            run.log.follow(self.events.append)

        return await self.cluster.run(key, [root], task=task, mode="ask", on_start=started, **more)

    def of(self, kind):
        return [one.data for one in self.events if one.type is kind]


async def test_a_change_that_a_person_describes(project):
    runner = Runner([f"{ADDED}"])
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    patch = result.output
    assert not patch.cannot_do
    assert "+def total(prices, discount=0):" in patch.diff
    assert patch.reason == (
        "The first candidate: 2 tests pass. The tests ran with "
        + patch.reason.partition("ran with ")[2]
    )
    assert patch.reason.endswith(
        "The tests show that nothing broke, not that it does what was asked."
    )
    assert [one.tool for one in runner.asked] == ["shell", "edit"]
    assert "in a copy" in runner.asked[0].reason
    assert (project / "prices.py").read_text() == PRICES.replace(
        "def total(prices):\n    return sum(prices)\n", ADDED
    )
    (chosen,) = runner.of(RunEventType.CANDIDATE_CHOSEN)
    assert chosen["decided_by"] == "tests"
    assert chosen["diff"] == patch.diff
    assert "File prices.py:" in runner.client.prompt_text(0)


async def test_what_runs_the_tests_is_what_is_asked_for(project):
    (project / "tests" / "test_prices.py").unlink()
    (project / "Makefile").write_text("test:\n\ttrue\n")
    runner = Runner([ADDED], shell="deny")
    await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert json.loads(runner.asked[0].arguments)["command"] == "make test"


async def test_a_change_that_breaks_a_test_is_not_kept(project):
    broken = "def total(prices, discount=0):\n    return sum(prices) + 1\n"
    runner = Runner([broken, broken, ADDED, *[broken] * 5])
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert "- discount" in result.output.diff
    checked = [one for one in runner.of(RunEventType.CANDIDATE_CHECKED) if one["check"] == "tests"]
    assert [one["passed"] for one in checked] == [False, True]
    assert checked[0]["detail"] == "The test test_total fails now."


async def test_without_a_candidate_that_passes_nothing_changes(project):
    runner = Runner(["def total(prices):\n    return 0\n"] * 20)
    result = await runner.run("coder", project, "Make `total` faster.")
    assert "The test test_total fails now." in result.output.cannot_do
    assert not result.output.diff
    assert (project / "prices.py").read_text() == PRICES


async def test_a_denied_change_is_still_shown(project):
    runner = Runner([ADDED], edit="deny")
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert "discount" in result.output.diff
    assert any("was not changed" in note for note in result.notes)
    assert (project / "prices.py").read_text() == PRICES


async def test_tests_that_may_not_run_do_not_decide(project):
    runner = Runner([ADDED], shell="deny")  # nothing could tell further candidates apart
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert "discount" in result.output.diff
    assert "No test or example shows that it does what was asked." in result.output.reason


CLAMP = "def clamp(value: int, most: int) -> int:\n    return value\n"


async def test_without_a_sandbox_a_change_is_written_and_not_compared(project, monkeypatch):
    async def run_calls(*given):
        raise SandboxUnavailable("There is none.")

    monkeypatch.setattr(change_agreement, "run_calls", run_calls)
    (project / "prices.py").write_text(f"{PRICES}\n\n{CLAMP}")
    runner = Runner([CLAMP.replace("return value", "return min(value, most)")], shell="deny")
    result = await runner.run("coder", project, "`clamp` shall return no more than most.")
    assert "+    return min(value, most)" in result.output.diff
    (chosen,) = runner.of(RunEventType.CANDIDATE_CHOSEN)
    assert chosen["decided_by"] == "likelihood"


async def test_where_nothing_decides_most_candidates_do(project):
    (project / "prices.py").write_text(PRICES + "\n\n" + CLAMP)
    wrong = CLAMP.replace("return value", "return most")
    right = CLAMP.replace("return value", "return min(value, most)")
    other = CLAMP.replace("return value", "return most if value > most else value")
    runner = Runner([wrong, right, other, right, right, other, right, wrong], shell="deny")
    result = await runner.run("coder", project, "`clamp` shall return no more than most.")
    assert "+    return min(value, most)" in result.output.diff
    (chosen,) = runner.of(RunEventType.CANDIDATE_CHOSEN)
    assert chosen["decided_by"] == "agreement"
    assert not chosen["verified"]


async def test_a_new_file_is_written(project):
    code = "def slug(text):\n    return text.lower().replace(' ', '-')\n"
    runner = Runner([code])
    task = "Write slug.py with a function slug(text): slug('A b') == 'a-b'"
    result = await runner.run("coder", project, task)
    assert (project / "slug.py").read_text() == code
    assert "1 of 1 examples hold" in str(runner.of(RunEventType.CANDIDATE_CHECKED))
    assert "+++ b/slug.py" in result.output.diff


async def test_an_empty_file_is_filled(project):
    (project / "slug.py").write_text("")
    code = "def slug(text):\n    return text.lower()\n"
    runner = Runner([code])
    result = await runner.run("coder", project, "Write slug(text) in slug.py: slug('A') == 'a'")
    assert not result.output.cannot_do
    assert (project / "slug.py").read_text() == code


async def test_examples_of_the_task_decide(project):
    wrong = "def total(prices):\n    return sum(prices)\n"
    right = "def total(prices):\n    return sum(one for one in prices if one is not None)\n"
    runner = Runner([wrong, right, *[wrong] * 6], shell="deny")
    task = "`total` shall leave out None: total([1, None]) == 1"
    result = await runner.run("coder", project, task)
    assert "is not None" in result.output.diff


async def test_examples_that_cannot_be_run_are_no_reason_against_a_change(project):
    (project / "prices.py").write_text("import no_such_package_1\n" + PRICES)
    (project / "no_such_package_1.pyi").write_text("")
    changed = PRICES.split("\n\n\n")[1].replace("price * (1 + RATE)", "(1 + RATE) * price")
    runner = Runner([changed], shell="deny")
    result = await runner.run("coder", project, "Make `with_tax` faster.")
    assert "+    return (1 + RATE) * price" in result.output.diff
    assert "The examples cannot be run: ModuleNotFoundError" in str(
        runner.of(RunEventType.CANDIDATE_CHECKED)
    )


async def test_declared_types_must_hold(project):
    (project / "prices.py").write_text(
        PRICES + "\n\ndef label(price: float) -> str:\n    return f'{price} EUR'\n"
    )
    wrong = "def label(price: float) -> str:\n    return 1\n"
    right = "def label(price: float) -> str:\n    return f'{price:.2f} EUR'\n"
    runner = Runner([wrong, right, *[wrong] * 6])
    result = await runner.run("coder", project, "`label` shall show two digits")
    assert "{price:.2f}" in result.output.diff
    (failed,) = [one for one in runner.of(RunEventType.CANDIDATE_CHECKED) if not one["passed"]]
    assert failed["check"] == "types"


async def test_a_rename_needs_no_model(project):
    runner = Runner([])
    result = await runner.run("coder", project, "rename total to summed")
    assert "+def summed(prices):" in result.output.diff
    assert runner.client.requests == []


async def test_a_model_that_cannot_write_is_not_asked(project):
    runner = Runner([], profile=CapabilityProfile("m", {Capability.TEXT: 1.0}))
    result = await runner.run("coder", project, "Give `total` a discount.")
    assert "needs a model" in result.output.cannot_do
    assert runner.client.requests == []


async def test_tests_are_not_changed_unless_that_is_asked(project):
    cheat = "def test_total():\n    assert True\n"
    runner = Runner(["tests/test_prices.py\n" + cheat] * 20)
    task = "Make prices.py and test_prices.py shorter"
    result = await runner.run(
        "coder", project, task.replace("test_prices.py", "tests/test_prices.py")
    )
    assert result.output.cannot_do or "test_prices" in result.output.diff


TRACE = """Traceback (most recent call last):
  File "tests/test_prices.py", line 5, in test_total
    assert total([1, 2]) == 3
  File "prices.py", line 16, in total
    return sum(price)
NameError: name 'price' is not defined
"""


async def test_the_debugger_mends_a_failure(project):
    (project / "prices.py").write_text(PRICES.replace("sum(prices)", "sum(price)"))
    runner = Runner(
        [
            "def total(prices):\n    return 0\n",
            *["def total(prices):\n    return sum(prices)\n"] * 7,
        ]
    )
    result = await runner.run("debugger", project, document=TRACE)
    assert result.output.file == "prices.py"
    assert "+    return sum(prices)" in result.output.diff
    assert "total([1, 2]) should be 3" in str(runner.of(RunEventType.CANDIDATE_CHECKED))
    assert any("1 of which failed before" in note for note in result.notes)
    assert "sum(price)" in (project / "prices.py").read_text()


async def test_the_debugger_writes_code_whatever_its_diagnoses_were_measured_to_be(project):
    (project / "prices.py").write_text(PRICES.replace("sum(prices)", "sum(price)"))
    runner = Runner(
        ["def total(prices):\n    return sum(prices)\n"],
        profile=CapabilityProfile("m", ALL, outputs={"Diagnosis": 0.0}),
    )
    result = await runner.run("debugger", project, document=TRACE)
    assert "+    return sum(prices)" in result.output.diff


@pytest.mark.parametrize(("share", "asked"), [(1.0, True), (0.0, False)])
async def test_a_failure_without_a_trace_is_diagnosed_if_that_was_measured(project, share, asked):
    runner = Runner(["{}"], profile=CapabilityProfile("m", ALL, outputs={"Diagnosis": share}))
    runner.client.hold = True
    budget = Budget(seconds=0.5) if asked else Budget()
    result = await runner.run("debugger", project, "total fails. Why?", budget=budget)
    assert bool(runner.client.requests) is asked
    assert result.output.cannot_do


async def test_a_test_is_kept_if_it_notices_faults(project):
    weak = "tax():\n    assert with_tax(0) is not None\n"
    wrong = "tax():\n    assert with_tax(100) == 119\n"
    empty = "tax():\n    with_tax(100)\n"
    good = "tax():\n    assert with_tax(100) == 120\n"
    runner = Runner([wrong, weak, empty, good, *[weak] * 4])
    result = await runner.run("test_generator", project, "Write a test for `with_tax`.")
    test = result.output
    assert test.path == "tests/test_with_tax.py"
    assert test.code.startswith("import pytest\n\nfrom prices import with_tax\n")
    assert "assert with_tax(100) == 120" in test.code
    details = [one["detail"] for one in runner.of(RunEventType.CANDIDATE_CHECKED)]
    assert "test_tax fails on the code as it is." in details
    assert "test_tax asserts nothing." in details
    assert "It notices 1 of 6 faults that were put into with_tax." in details
    assert "It passes, and notices 6 of 6 faults" in test.reason
    assert not (project / "tests" / "test_with_tax.py").exists()


async def test_tests_that_fail_on_the_code_are_left_out(project):
    code = "tax():\n    assert with_tax(100) == 120\n\n\ndef test_error():\n    assert with_tax(-1) == 0\n"
    runner = Runner([code])
    result = await runner.run("test_generator", project, "Write a test for `with_tax`.")
    assert "def test_tax():" in result.output.code
    assert "test_error" not in result.output.code


async def test_a_class_whose_test_fails_on_the_code_notices_nothing(project):
    wrong = """tax():
    assert with_tax(100) == 120


class TestTax:
    def test_less(self):
        assert with_tax(-1) == 0
"""
    good = "tax():\n    assert with_tax(100) == 120\n"
    runner = Runner([wrong, good, *[wrong] * 6])
    result = await runner.run("test_generator", project, "Write a test for `with_tax`.")
    assert "TestTax" not in result.output.code
    details = [one["detail"] for one in runner.of(RunEventType.CANDIDATE_CHECKED)]
    assert "test_less fails on the code as it is." in details


async def test_the_fix_of_a_finding_without_a_fixer(project):
    runner = Runner(["def total(prices):\n    return sum(prices or [])\n"])
    finding = {
        "id": "f1", "file": "prices.py", "line": 16, "end_line": 16, "rule": "none-argument",
        "severity": Severity.HIGH.value, "message": "prices may be None.", "evidence": "return sum(prices)",
        "confidence": 1.0,
    }  # fmt: skip
    result = await runner.run("patch_applier", project, inputs={"finding": finding})
    assert "+    return sum(prices or [])" in result.output.diff
    assert len(result.output.finding_ids) == 1


async def test_a_file_with_private_data_is_not_shown(project):
    secret = 'KEY = "ghp_' + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8" + '"\n'
    (project / "prices.py").write_text(secret + PRICES)
    runner = Runner([])
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert result.output.cannot_do == "prices.py holds private data, which no model is shown."
    assert runner.client.requests == []


async def test_line_ends_and_what_is_not_touched_stay(project):
    text = PRICES.replace("\n", "\r\n")
    (project / "prices.py").write_bytes(text.encode())
    runner = Runner([ADDED])
    result = await runner.run("coder", project, "Give `total` an optional parameter discount.")
    assert not result.output.cannot_do
    data = (project / "prices.py").read_bytes()
    assert b"discount=0" in data
    assert data.count(b"\r\n") == data.count(b"\n")
