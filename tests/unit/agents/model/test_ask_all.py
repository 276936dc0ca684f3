"""`ask_all` over a scripted client; `tests/structured/test_agent_steps.py` has its cost on the engine."""

import pytest

from agents.api.errors import InvalidTask
from agents.model.ask_all import MAX_QUESTIONS, Structured, ask_all
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.question import Question
from agents.model.session import ModelSession
from tests.fakes.scripted_client import ScriptedClient

AGE = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}
LAW = Question("law", "Which law applies?", ("German", "English"))


async def asked(client, document, questions, **options):
    session = ModelSession(client)
    layout = SharedLayout(session)
    return await ask_all(session, layout, Decider(session, layout), document, questions, **options)


async def test_each_kind_of_question_is_answered_in_order():
    client = ScriptedClient(
        [" Two parties. ", '{"age": 7}'],
        scores=lambda request, text: {"B" if "A) German" in text else "A": 0.0},
    )
    given = await asked(client, "A contract.", ["Who?", LAW, Structured("How old?", AGE)])
    assert [one.text for one in given.replies] == ["Two parties.", "English", '{"age": 7}']
    assert given.replies[1].decision.label == "English"
    assert given.replies[2].value == {"age": 7}
    assert {one.prompt_ids[: given.shared_tokens] for one in client.requests} == {
        client.requests[0].prompt_ids[: given.shared_tokens]
    }


async def test_the_document_is_cut_to_the_context():
    client = ScriptedClient(["yes"], context_length=600)
    given = await asked(client, "word " * 500, ["Is it long?"], max_tokens=8)
    assert given.cut_tokens > 0
    assert len(client.requests[0].prompt_ids) + 8 <= 600


@pytest.mark.parametrize("count", [0, MAX_QUESTIONS + 1])
async def test_the_number_of_questions_is_bounded(count):
    with pytest.raises(InvalidTask):
        await asked(ScriptedClient(), "a document", ["?"] * count)
