"""Prompt-lookup speculation in the engine, on the demo model: the same outputs in fewer steps."""

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from engine.api.config import EngineConfig
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, RequestOutput, SamplingParams
from engine.api.snapshot import Totals
from engine.api.step_costs import StepCosts
from engine.runtime.engine import AsyncPravahaEngine
from engine.scheduler.step_time import StepTimeModel

TEXT = (
    "The lighthouse stood at the end of a long and narrow spit of land, and on most days the wind "
    "came at it from three sides. Its keeper had lived there for thirty one years."
)
EDIT = f"Repeat this text exactly:\n\n{TEXT}"
FREE = "Write a haiku about the sea."
ANSWER = {"name": "Keeper of the lighthouse", "years": 31, "place": "Keeper of the lighthouse"}
KEEPER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "years": {"type": "integer", "minimum": 0, "maximum": 99},
        "place": {"type": "string", "maxLength": 30},
    },
    "required": ["name", "years", "place"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def engines(demo_model: Path) -> Iterator[dict[bool, AsyncPravahaEngine]]:
    """Engines without and with speculation, with step costs fixed to a fifth of a step per token."""
    with pytest.MonkeyPatch.context() as patch:
        costs = StepCosts(constant=1e-3, prefill_token=1e-4, decode_row=2e-4, kv_token=0.0)
        patch.setattr(StepTimeModel, "costs", property(lambda self: costs))
        both = {}
        for on in (False, True):
            config = EngineConfig(
                demo_model, "demo", kv_cache_bytes=64 << 20, speculation=on, prefix_caching=False
            )
            both[on] = AsyncPravahaEngine(config)
            both[on].start()
            both[on].wait_ready(60)
        yield both
        for engine in both.values():
            engine.shutdown()


def ask(engine: AsyncPravahaEngine, text: str, **params: object) -> Request:
    ids = engine.tokenizer.encode_chat([{"role": "user", "content": text}])
    return Request(tuple(ids), SamplingParams(**{"temperature": 0.0, "max_tokens": 40} | params))


def outcome(output: RequestOutput) -> tuple[object, ...]:
    return (
        output.token_ids,
        output.text,
        output.finish_reason,
        output.logprobs,
        output.top_logprobs,
    )


@pytest.mark.parametrize(
    "params",
    [
        {"logprobs": 2},
        {"temperature": 0.4, "seed": 3, "top_p": 0.9},
        {"repetition_penalty": 1.05, "temperature": 0.2, "seed": 4, "logprobs": 0},
        {"stop": ("spit of land", "haiku")},
    ],
    ids=["greedy", "seeded", "penalised", "stop"],
)
def test_answers_are_equal_and_take_fewer_steps(
    engines: dict[bool, AsyncPravahaEngine], params: dict[str, object]
) -> None:
    outputs: dict[bool, list[RequestOutput]] = {}
    totals: dict[bool, tuple[Totals, Totals]] = {}
    steps: dict[bool, int] = {}
    for on, engine in engines.items():
        before = engine.snapshot().totals
        alone = engine.submit(ask(engine, EDIT, **params)).wait_result(120)
        steps[on] = engine.snapshot().totals.steps - before.steps
        handles = [engine.submit(ask(engine, text, **params)) for text in (FREE, EDIT, FREE)]
        outputs[on] = [alone, *(handle.wait_result(120) for handle in handles)]
        totals[on] = before, engine.snapshot().totals
    for plain, drafted in zip(outputs[False], outputs[True], strict=True):
        assert outcome(drafted) == outcome(plain)
    (_, off), (before, after) = totals[False], totals[True]
    assert off.draft_tokens == 0
    assert after.accepted_draft_tokens > before.accepted_draft_tokens
    if params == {"logprobs": 2}:  # the answer repeats the prompt's text
        assert TEXT[:60] in outputs[True][0].text
        assert steps[True] < steps[False] / 2
    if "stop" not in params:  # a stop string may cut off accepted tokens
        marked = sum(sum(output.drafted) for output in outputs[True])
        assert marked == after.accepted_draft_tokens - before.accepted_draft_tokens
        assert not any(flag for output in outputs[False] for flag in output.drafted)
    if "stop" in params:
        assert outputs[True][0].finish_reason is FinishReason.STOP
        assert outputs[True][0].text.endswith("narrow ")


def test_answers_under_a_schema_are_equal_alone_and_beside_a_row_with_drafts(
    engines: dict[bool, AsyncPravahaEngine],
) -> None:
    """The answer repeats its prompt, so that without the grammar it would have drafts."""
    grammar = Grammar.json_schema(KEEPER)
    prompt = f"Repeat this JSON exactly:\n\n{json.dumps(ANSWER)}\n\n{json.dumps(ANSWER)}"
    params = {"grammar": grammar, "max_tokens": 120, "logprobs": 1}
    outputs: dict[bool, list[RequestOutput]] = {}
    accepted: dict[bool, int] = {}
    for on, engine in engines.items():
        engine.build_grammar(grammar).result(60)
        alone = engine.submit(ask(engine, prompt, **params)).wait_result(120)
        before = engine.snapshot().totals.accepted_draft_tokens
        asked = [ask(engine, prompt, **params), ask(engine, EDIT), ask(engine, FREE, **params)]
        handles = [engine.submit(request) for request in asked]
        outputs[on] = [alone, *(handle.wait_result(120) for handle in handles)]
        accepted[on] = engine.snapshot().totals.accepted_draft_tokens - before
    for plain, drafted in zip(outputs[False], outputs[True], strict=True):
        assert outcome(drafted) == outcome(plain)
    assert accepted[False] == 0
    assert accepted[True] > 0  # of the row without a grammar
    alone, beside, _, free = outputs[True]
    assert outcome(alone) == outcome(beside)
    for output in (alone, free):
        assert output.finish_reason is FinishReason.STOP
        jsonschema.validate(json.loads(output.text), KEEPER)
