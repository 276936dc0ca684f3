"""Failing tests from end to end, without a model and with a scripted one."""

import pytest

from agents.api.events import RunEventType
from agents.model.session import ModelSession
from agents.repair.acceptance import Gate
from agents.repair.failing_tests.failing_test_repair import FailingTestRepair
from agents.repair.failing_tests.rewrites import spliced_text
from agents.repair.failing_tests.suspects import Suspect
from agents.repair.heal import baseline_of
from agents.repair.project_root import Project
from agents.repair.work_copy import WorkCopy
from agents.runs.event_log import EventLog
from tests.fakes.scripted_client import ScriptedClient

pytestmark = pytest.mark.usefixtures("quick")


class Case:
    """A repair of a project's failing tests, with what it told."""

    def __init__(self, root, script=None):
        self.root = root
        self.client = None if script is None else ScriptedClient(script)
        self.log = EventLog("r")
        self.notes = []

    async def model(self):
        return None if self.client is None else ModelSession(self.client)

    async def run(self):
        with WorkCopy(self.root) as copy:
            gate = Gate(copy, await baseline_of(copy, self.root), [])
            repair = FailingTestRepair(
                copy, Project(self.root), gate, self.log, model=self.model, note=self.notes.append
            )
            await repair.repair()
            self.diff = copy.diff()
            return repair.decisions

    def told(self, kind):
        return [one.data for one in self.log.since(0) if one.type is kind]


async def test_a_usual_slip_is_repaired_without_a_model(shop):
    case = Case(shop)
    (decision,) = await case.run()
    assert decision.accepted, decision.reason
    assert decision.reason == "1 failing test passes now, and all that passed still do."
    assert "+    if pieces >= BULK:" in case.diff
    (found,) = case.told(RunEventType.FINDING)
    assert (found["test"], found["file"], found["line"]) == (
        "test_shop.py::test_ten",
        "test_shop.py",
        9,
    )
    (suspects,) = case.told(RunEventType.SUSPECTS)
    assert suspects["suspects"][0]["name"] == "due"
    (tried,) = case.told(RunEventType.SLIPS_TRIED)
    assert "'>=' for '>'" in [one["what"] for one in tried["passed"]]
    assert tried["dropped"] == {"the failing test": tried["tried"] - 1}
    assert case.told(RunEventType.DECISION)[-1]["question"] == "which repair"


async def test_nothing_is_chosen_where_the_tests_allow_different_repairs(shop):
    (shop / "shop.py").write_text("def due(prices):\n    return prices[1]\n")
    (shop / "test_shop.py").write_text(
        "from shop import due\n\ndef test_due():\n    assert due([7, 5, 7]) == 7\n"
    )
    case = Case(shop)
    (decision,) = await case.run()
    assert not decision.accepted
    assert "The tests allow 2 different repairs" in decision.reason
    assert decision.patch.cannot_do
    assert case.diff == ""
    assert case.told(RunEventType.DECISION)[-1]["abstained"]


WHOLE = '''def due(pieces: int, cents: int) -> int:
    """The price, a tenth less for ten pieces and more."""
    whole = price(pieces, cents)
    if %s:
        return whole - whole // 10
    return whole
'''
SHORT = """from shop import due, price

def test_price():
    assert price(3, 5) == 15

def test_ten():
    assert due(10, 100) == 900

def test_three():
    assert due(3, 100) == 300
"""
WRONG = WHOLE % "pieces * pieces > 500"


@pytest.fixture
def unusual(shop):
    """A fault that no usual slip explains."""
    text = (shop / "shop.py").read_text().replace("pieces > BULK", "pieces * pieces > 500")
    (shop / "shop.py").write_text(text)
    (shop / "test_shop.py").write_text(SHORT)
    return shop


async def test_a_model_s_candidates_are_checked_and_the_majority_is_kept(unusual):
    right, longer = WHOLE % "pieces >= BULK", WHOLE % "not pieces < BULK"
    cheat, broken = WHOLE % "pieces == 10", WHOLE % "pieces > 1"
    case = Case(unusual, [cheat, right, longer, broken, "def other(): pass\n", WRONG])
    (decision,) = await case.run()
    assert decision.accepted, decision.reason
    assert "+    if pieces >= BULK:" in case.diff
    (asked,) = case.told(RunEventType.MODEL_ASKED)
    assert "def test_ten" in asked["prompt"]
    assert "def test_three" not in asked["prompt"]
    assert "E       assert 1000 == 900" in asked["prompt"]
    assert "whole = price(pieces, cents)" not in asked["prompt"]
    assert (
        "def price(pieces: int, cents: int) -> int:\n    return pieces * cents" in asked["prompt"]
    )
    assert asked["prompt"].endswith("Begin with `def due(`.")
    dropped = {
        one["candidate"]: one["check"]
        for one in case.told(RunEventType.CANDIDATE_CHECKED)
        if not one["passed"]
    }
    assert dropped == {3: "all tests", 4: "fits", 5: "fits"}
    clusters = case.told(RunEventType.DECISION)[-1]["clusters"]
    assert [one["weight"] for one in clusters] == [2.0, 1.0]


async def test_candidates_without_a_majority_are_not_kept(unusual):
    one, other = WHOLE % "pieces == 10", WHOLE % "pieces >= BULK"
    case = Case(unusual, [one, other, WRONG, WRONG, WRONG, WRONG])
    (decision,) = await case.run()
    assert not decision.accepted
    assert "different repairs" in decision.reason
    assert case.diff == ""


async def test_the_faulty_body_is_shown_if_nothing_passes_without_it(unusual):
    right = WHOLE % "pieces >= BULK"
    case = Case(unusual, [WRONG] * 6 + [right, right, WRONG, WRONG, WRONG, WRONG])
    (decision,) = await case.run()
    assert decision.accepted, decision.reason
    first, second = case.told(RunEventType.MODEL_ASKED)
    assert "if pieces * pieces > 500:" not in first["prompt"]
    assert "if pieces * pieces > 500:" in second["prompt"]


@pytest.mark.parametrize("name", ["shop.py", "test_shop.py"])
async def test_a_file_with_private_data_is_not_shown(unusual, name):
    secret = '\nKEY = "ghp_' + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8" + '"\n'
    (unusual / name).write_text((unusual / name).read_text() + secret)
    case = Case(unusual, [])
    (decision,) = await case.run()
    assert not decision.accepted
    assert case.client.requests == []
    assert f"{name} holds private data, which no model is shown." in case.notes


async def test_one_sample_alone_is_not_enough(unusual):
    case = Case(unusual, [WHOLE % "pieces == 10", WRONG, WRONG, WRONG, WRONG, WRONG])
    (decision,) = await case.run()
    assert not decision.accepted
    assert "nothing confirms it" in decision.reason


async def test_a_candidate_that_changes_other_code_is_dropped_by_the_rules(unusual):
    cheats = [
        WHOLE % "pieces >= __import__('os').getpid()",
        "def due(pieces):\n    return 900\n",
        "def due(pieces, cents):\n    try:\n        return 900\n    except Exception:\n        return 0\n",
        "import sys\n" + WHOLE % "'pytest' in sys.modules",
        "def due(:\n",
        "",
    ]
    case = Case(unusual, cheats * 6)
    (decision,) = await case.run()
    assert not decision.accepted
    assert case.told(RunEventType.PATCH_PROPOSED) == []
    checks = {
        one["check"] for one in case.told(RunEventType.CANDIDATE_CHECKED) if not one["passed"]
    }
    assert checks <= {"fits", "parses", "code"}


async def test_several_faults_are_repaired_one_after_the_other(shop):
    text = (shop / "shop.py").read_text().replace("pieces * cents", "pieces + cents")
    (shop / "shop.py").write_text(text)
    case = Case(shop)
    decisions = await case.run()
    assert "+    return pieces * cents" in case.diff
    assert "+    if pieces >= BULK:" in case.diff
    assert sum(one.accepted for one in decisions) == 2


async def test_only_what_the_project_contains_is_changed(shop):
    case = Case(shop)
    with WorkCopy(shop) as copy:
        gate = Gate(copy, await baseline_of(copy, shop), [])
        repair = FailingTestRepair(copy, Project(shop, "elsewhere"), gate, case.log)
        await repair.repair()
        assert copy.diff() == ""
    assert "no code of the project that may be changed" in repair.decisions[0].reason


async def test_files_with_other_line_ends_keep_them(shop):
    data = (shop / "shop.py").read_bytes().replace(b"\n", b"\r\n")
    (shop / "shop.py").write_bytes(data)
    case = Case(shop)
    (decision,) = await case.run()
    assert decision.accepted, decision.reason
    assert case.diff.count("\r\n") > 2


async def test_a_byte_order_mark_stays(shop):
    data = (shop / "shop.py").read_bytes()
    (shop / "shop.py").write_bytes(b"\xef\xbb\xbf" + data)
    case = Case(shop)
    (decision,) = await case.run()
    assert decision.accepted, decision.reason
    assert "\ufeff" not in case.diff


async def test_files_beside_the_suspect_s_may_have_another_encoding(shop):
    (shop / "names.txt").write_bytes("Käse\n".encode("latin-1"))
    case = Case(shop)
    (decision,) = await case.run()
    assert decision.accepted, decision.reason


async def test_a_file_in_another_encoding_is_no_suspect(shop):
    text = "# coding: latin-1\n# Käse\n" + (shop / "shop.py").read_text()
    (shop / "shop.py").write_bytes(text.encode("latin-1"))
    (decision,) = await Case(shop).run()
    assert "no code of the project that may be changed" in decision.reason


METHOD = """import os


class Till:
    def add(self, n):
        return n

    @property
    def left(self):
        return 1
"""


@pytest.mark.parametrize(
    "code",
    [
        "def add(self, n):\n    return n + 1\n",
        "    def add(self, n):\n        return n + 1\n",
        "class Till:\n    def add(self, n):\n        return n + 1\n",
        "Here it is:\ndef add(",
    ],
)
def test_a_method_is_put_back_at_its_place(code):
    suspect = Suspect("a.py", "Till.add", 5, 6, 1.0)
    text = spliced_text(METHOD, suspect, code)
    if "Here" in code:
        assert text is None
    elif code.startswith("    "):
        assert text in (None, METHOD.replace("return n\n", "return n + 1\n"))
    else:
        assert text == METHOD.replace("return n\n", "return n + 1\n")


def test_imports_beside_the_function_are_added_once():
    suspect = Suspect("a.py", "Till.left", 8, 10, 1.0)
    code = (
        "import os\nfrom math import floor\n\n@property\ndef left(self):\n    return floor(1.5)\n"
    )
    text = spliced_text(METHOD, suspect, code)
    assert text.startswith("from math import floor\nimport os\n")
    assert text.count("import os") == 1
    assert text.count("@property") == 1
