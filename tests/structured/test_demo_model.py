"""Structured answers of the demo model: completed answers have the requested form."""

import json
import re

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from engine.api.config import EngineConfig
from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.structured.formats import validate
from tests.structured.schemas import documents

GENERATED = 12
BOOK = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 30},
        "year": {"type": "integer", "minimum": 1450, "maximum": 2030},
        "genres": {"type": "array", "items": {"enum": ["novel", "poem", "play"]}, "maxItems": 2},
        "author": {"anyOf": [{"type": "string", "maxLength": 20}, {"type": "null"}]},
    },
    "required": ["title", "year", "genres", "author"],
    "additionalProperties": False,
}
SUM = 'start: NUMBER " + " NUMBER " = " NUMBER\nNUMBER: /[1-9][0-9]{0,3}/'


@pytest.fixture(scope="module")
def engine(demo_model):
    engine = AsyncPravahaEngine(
        EngineConfig(model=demo_model, name="demo", kv_cache_bytes=192 << 20, max_model_len=1024)
    )
    engine.start()
    engine.wait_ready()
    yield engine
    engine.shutdown()


def ask(engine, question, grammar=None, **params):
    ids = engine.tokenizer.encode_chat([{"role": "user", "content": question}])
    defaults = {"temperature": 0.0, "max_tokens": 100}
    return engine.submit(Request(tuple(ids), SamplingParams(**defaults | params, grammar=grammar)))


def generated(count):
    """The first schemas that hypothesis draws: the same ones every time."""
    schemas = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schema=documents())
    def draw(schema):
        schemas.append(schema)

    draw()
    return schemas


def test_every_form_constrains_the_answer(engine):
    book = ask(engine, "Describe a book as JSON with title, year, genres and author.",
               Grammar.json_schema(BOOK))  # fmt: skip
    date = ask(engine, "When did the war end?", Grammar.regex(r"\d{4}-[01]\d-[0-3]\d"))
    choice = ask(engine, "Is the sky blue?", Grammar.choice(["yes", "no", "perhaps not"]))
    total = ask(engine, "Add two numbers.", Grammar.lark(SUM))
    free = ask(engine, "Say hello.", max_tokens=8)
    beginning = ask(engine, "Write JSON about a cat.", Grammar.json_object(), max_tokens=12)

    answer = book.wait_result()
    assert answer.finish_reason is FinishReason.STOP
    validate(json.loads(answer.text), BOOK)
    assert list(json.loads(answer.text)) == list(BOOK["properties"])
    assert re.fullmatch(r"\d{4}-[01]\d-[0-3]\d", date.wait_result().text)
    assert choice.wait_result().text in {"yes", "no", "perhaps not"}
    assert re.fullmatch(r"[1-9]\d{0,3} \+ [1-9]\d{0,3} = [1-9]\d{0,3}", total.wait_result().text)
    assert free.wait_result().finish_reason is not FinishReason.ERROR
    cut = beginning.wait_result()
    assert cut.text.startswith("{")
    assert cut.finish_reason in (FinishReason.LENGTH, FinishReason.STOP)


def test_generated_schemas_through_the_model(engine):
    handles = []
    for seed, schema in enumerate(generated(GENERATED)):
        grammar = Grammar.json_schema(schema)
        try:
            engine.build_grammar(grammar).result()
        except InvalidRequest:
            continue
        question = f"Give an example of {json.dumps(schema)[:300]}"
        handles.append((schema, ask(engine, question, grammar, temperature=1.0, seed=seed)))
    complete = 0
    for schema, handle in handles:
        answer = handle.wait_result()
        assert answer.finish_reason in (FinishReason.STOP, FinishReason.LENGTH), answer.error
        if answer.finish_reason is FinishReason.STOP:
            validate(json.loads(answer.text), schema)
            complete += 1
    assert complete > GENERATED // 2


def test_a_seeded_structured_answer_is_the_same_alone_and_in_a_batch(engine):  # regression 50
    form = Grammar.json_schema(BOOK)
    asked = {"temperature": 0.9, "seed": 12, "grammar": form}
    question = "Describe a book as JSON."
    alone = ask(engine, question, **asked).wait_result()
    others = [ask(engine, f"Number {one}", form, temperature=1.0, seed=one) for one in range(6)]
    beside = ask(engine, question, **asked)
    assert beside.wait_result().token_ids == alone.token_ids
    for other in others:
        answer = other.wait_result()
        if answer.finish_reason is FinishReason.STOP:
            validate(json.loads(answer.text), BOOK)
