"""Widening over a scripted model: what is written, checked, stopped and chosen."""

import pytest

from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import BudgetExhausted
from agents.api.events import RunEventType
from agents.model.session import ModelSession
from agents.width import CodePrompt, widen
from agents.width.agreement import Agreement
from agents.width.checks.defines import Defines
from agents.width.checks.examples import Examples
from agents.width.checks.parses import Parses
from agents.width.examples import examples_in
from agents.width.missing_imports import with_imports
from agents.width.probe_run import Call, Setting
from agents.width.signature import Signature
from tests.fakes.scripted_client import ScriptedClient

RIGHT = "def double(x):\n    return 2 * x\n"
WRONG = "def double(x):\n    return x\n"
OTHER = "def double(x):\n    return x + x\n"
BROKEN = "def double(x:\n    return x\n"
ASK = CodePrompt.ask("Write double.", goal="double")
EXAMPLES = examples_in("double(2) == 4\ndouble(0) == 0", "double", ("x",))
CHECKS = [
    Parses(),
    Defines(Signature("double", ("x",))),
    Examples(Setting(), EXAMPLES),
]


class Events(list):
    def __call__(self, kind, /, **data):
        self.append((kind, data))

    def of(self, kind):
        return [data for one, data in self if one is kind]


async def test_nothing_is_written_beyond_a_first_candidate_that_passes():
    client = ScriptedClient([RIGHT])
    events = Events()
    chosen = await widen(ModelSession(client), ASK, CHECKS, record=events)
    assert chosen.code == RIGHT
    assert chosen.verified
    assert chosen.decided_by == "examples"
    assert chosen.reason == "2 of 2 examples hold."
    assert len(client.requests) == 1
    assert client.requests[0].sampling.temperature == 0
    assert [kind for kind, _ in events] == [
        RunEventType.WIDTH_STARTED,
        RunEventType.CANDIDATE_WRITTEN,
        *[RunEventType.CANDIDATE_CHECKED] * 3,
        RunEventType.CANDIDATE_CHOSEN,
    ]
    assert len({data["width"] for _, data in events}) == 1


@pytest.mark.parametrize(("counted", "written"), [(False, 1), (True, 8)])
async def test_without_a_check_that_decides_more_are_written_only_for_a_caller_that_compares(
    counted, written
):
    client = ScriptedClient([RIGHT] * 8)
    chosen = await widen(ModelSession(client), ASK, [Parses()], counted=counted)
    assert (chosen.code, chosen.verified) == (RIGHT, False)
    assert len(client.requests) == written


async def test_the_rest_is_aborted_at_the_first_that_passes():
    client = ScriptedClient([WRONG, BROKEN, RIGHT, WRONG, WRONG])
    chosen = await widen(ModelSession(client), ASK, CHECKS, width=5)
    assert chosen.code == RIGHT
    assert chosen.verified
    assert [one.number for one in chosen.candidates] == [0, 1, 2]
    assert chosen.stopped == 2
    assert [one.failed.check if one.failed else "" for one in chosen.candidates] == [
        "examples",
        "parses",
        "",
    ]


async def test_all_candidates_have_the_same_prompt_and_rising_temperatures():
    client = ScriptedClient([WRONG] * 8)
    await widen(ModelSession(client), ASK, CHECKS, width=4, repairs=0)
    assert len({request.prompt_ids for request in client.requests}) == 1
    temperatures = [request.sampling.temperature for request in client.requests]
    assert temperatures == sorted(set(temperatures))
    assert temperatures[0] == 0


async def test_a_second_round_sees_what_failed():
    client = ScriptedClient([WRONG, WRONG, RIGHT, RIGHT])
    chosen = await widen(ModelSession(client), ASK, CHECKS, width=2, repairs=2)
    assert chosen.verified
    assert chosen.candidate.round == 1
    prompt = client.prompt_text(2)
    assert "A first attempt was wrong: double(2) should be 4, but it is 2." in prompt
    assert "return x" not in prompt
    assert all(one.temperature > 0 for one in chosen.candidates if one.round)


async def test_a_second_round_begins_with_the_code_that_the_prompt_gives():
    ask = CodePrompt.ask("Write double.", opening="```python\ndef double(")
    client = ScriptedClient(["x):\n    return x\n", "x):\n    return x + x\n"])
    chosen = await widen(ModelSession(client), ask, CHECKS, width=1, repairs=1)
    assert chosen.code == OTHER
    assert client.prompt_text(1).endswith("def double(")


async def test_code_is_completed_before_it_is_checked():
    client = ScriptedClient(["def double(x):\n    return 2 * int(math.fabs(x))\n"])
    chosen = await widen(ModelSession(client), ASK, CHECKS, completed=with_imports)
    assert chosen.verified
    assert chosen.code.startswith("import math\n")


async def test_of_candidates_that_fail_the_one_that_came_furthest_is_kept():
    client = ScriptedClient([BROKEN, WRONG, BROKEN])
    chosen = await widen(ModelSession(client), ASK, CHECKS, width=3, repairs=0)
    assert chosen.code == WRONG
    assert not chosen.verified
    assert not chosen.passed
    assert "double(2) should be 4" in chosen.reason


async def test_an_equal_candidate_is_not_run_again():
    commented = f"# as asked\n{WRONG}"
    client = ScriptedClient([WRONG, commented])
    events = Events()
    chosen = await widen(ModelSession(client), ASK, CHECKS, width=2, repairs=0, record=events)
    assert chosen.candidates[1].same_as == 0
    assert chosen.candidates[1].outcomes == chosen.candidates[0].outcomes
    assert len(events.of(RunEventType.CANDIDATE_CHECKED)) == 3
    assert [data["same_as"] for data in events.of(RunEventType.CANDIDATE_WRITTEN)] == [None, 0]


async def test_equal_code_for_two_files_is_not_equal():
    ask = CodePrompt.ask("Write double.", opening="```python\n# ")
    client = ScriptedClient([f"a.py\n{WRONG}", f"b.py\n{WRONG}"])
    chosen = await widen(ModelSession(client), ask, CHECKS, width=2, repairs=0)
    assert [one.same_as for one in chosen.candidates] == [None, None]


async def test_without_a_check_that_decides_the_majority_is_chosen():
    client = ScriptedClient([WRONG, RIGHT, OTHER])
    calls = tuple(Call(f"double({number})") for number in range(5))
    chosen = await widen(
        ModelSession(client),
        ASK,
        CHECKS[:2],
        width=3,
        agreement=Agreement(Setting(), calls),
    )
    assert chosen.code in (RIGHT, OTHER)
    assert not chosen.verified
    assert chosen.decided_by == "agreement"
    assert "2 of 3 candidates" in chosen.reason
    assert "double(1)" in chosen.reason


def compared(width, *script, checks=CHECKS):
    client = ScriptedClient(script)
    calls = tuple(Call(f"double({number})") for number in range(5))
    agreement = Agreement(Setting(), calls)
    return widen(ModelSession(client), ASK, checks, width=width, agreement=agreement)


async def test_three_that_pass_and_agree_are_enough():
    chosen = await compared(8, RIGHT, WRONG, OTHER, RIGHT, WRONG, WRONG, WRONG, WRONG)
    assert chosen.verified
    assert chosen.stopped == 4
    assert chosen.code == RIGHT


async def test_candidates_that_pass_and_differ_are_voted_on():
    special = "def double(x):\n    return 2 * x if x < 3 else 0\n"
    chosen = await compared(4, special, RIGHT, OTHER, special.replace("0", "1"))
    assert chosen.code == RIGHT
    assert chosen.decided_by == "agreement"
    assert chosen.verified
    assert (
        "2 of 4 candidates agree on all of 5 generated inputs, such as double(3)." in chosen.reason
    )


async def test_without_a_check_that_decides_more_than_half_must_agree():
    chosen = await compared(4, RIGHT, OTHER, RIGHT, WRONG, checks=CHECKS[:2])
    assert chosen.stopped == 1
    assert not chosen.verified


async def test_a_model_that_writes_no_code_is_a_reason():
    client = ScriptedClient(["", "", ""])
    chosen = await widen(ModelSession(client), ASK, CHECKS, width=3)
    assert chosen.candidate is None
    assert chosen.reason == "The model wrote no code."


class Dear:
    name = "dear"
    decides = True

    async def judge(self, code):
        raise NotImplementedError


async def test_dear_checks_allow_fewer_candidates(monkeypatch):
    now = [0.0]

    async def slow(code):
        now[0] += 30.0
        return await Parses().judge("(")

    check = Dear()
    check.judge = slow
    monkeypatch.setattr("agents.width.width.time.monotonic", lambda: now[0])
    client = ScriptedClient([f"x = {number}\n" for number in range(8)])
    chosen = await widen(ModelSession(client), ASK, [check], width=8, repairs=0, check_s=60.0)
    assert len(chosen.candidates) == 3  # the first, and two for 60 s


async def test_the_budget_allows_fewer_candidates():
    client = ScriptedClient([WRONG] * 8)
    meter = BudgetMeter(Budget(tokens=1000), started=0.0)
    chosen = await widen(ModelSession(client), ASK, CHECKS, repairs=0, max_tokens=100, meter=meter)
    assert 1 < len(chosen.candidates) < 8


async def test_a_budget_for_some_of_those_that_are_written_together_makes_those():
    client = ScriptedClient([RIGHT] * 8)
    meter = BudgetMeter(Budget(tokens=600), started=0.0)
    agreement = Agreement(Setting(), (Call("double(1)"),))
    chosen = await widen(
        ModelSession(client), ASK, CHECKS, max_tokens=100, meter=meter, agreement=agreement
    )
    assert chosen.verified
    assert 1 <= len(client.requests) < 8


async def test_a_second_round_costs_no_more_than_checks_may(monkeypatch):
    now = [0.0]

    async def slow(code):
        now[0] += 30.0
        return await Parses().judge("(")

    check = Dear()
    check.judge = slow
    monkeypatch.setattr("agents.width.width.time.monotonic", lambda: now[0])
    client = ScriptedClient([f"x = {number}\n" for number in range(20)])
    chosen = await widen(ModelSession(client), ASK, [check], width=8, check_s=60.0)
    assert len(chosen.candidates) == 3


async def test_a_budget_below_one_candidate_is_an_error():
    meter = BudgetMeter(Budget(tokens=10), started=0.0)
    with pytest.raises(BudgetExhausted):
        await widen(ModelSession(ScriptedClient([RIGHT])), ASK, CHECKS, meter=meter)
