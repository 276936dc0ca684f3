"""Plans of answers with tools: what is asked of the model, and what it may write."""

import math
from dataclasses import replace

import pytest

from engine.api.request import FinishReason, SamplingParams, Timings, TokenBatch
from engine.api.tools import Tool, ToolChoice
from engine.grammar.call_plan import WORDS, call_planner
from engine.grammar.turn_tools import TurnTools
from engine.text.tool_calls.decision import NO_CALL, NO_FURTHER_CALL
from engine.text.tool_calls.forms.hermes import HERMES
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.fakes.grammars import compiled, toy_compiler
from tests.server.scripted_engine import INFO
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

TEMPLATE = (
    "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOKENIZER = byte_tokenizer(template=TEMPLATE)
TOOLS = TurnTools([Tool("read")], ToolChoice(), HERMES, TOKENIZER)
MEASURED = CallThresholds(Threshold(1.0), Threshold(0.0), Threshold(-0.5))
PROMPT = TOKENIZER.encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", special=True)
ROOMY = replace(INFO, context_length=4096)


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler(TOKENIZER, VOCAB_SIZE)
    yield compiler
    compiler.close()


def planner(tools=TOOLS, thresholds=MEASURED, *, prompt=PROMPT, info=ROOMY, **options):
    options = {"render": TOKENIZER.render_chat, "follows_result": True} | options
    return call_planner(tools, info, thresholds, prompt, **options)


def words_of(**options):
    """The text that asks for words."""
    made = planner(in_words=True, **options)
    assert made.rows(PROMPT) == []
    return made, TOKENIZER.decode(made.decide([]).suffix, skip_special=False)


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "42",
        "`read` does it.",
        "``x`` does.",
        "**Yes**",
        "- one\n- two",
        "Oui: {}",
        "नमस्ते",
    ],
)
def test_words_may_be_written(compiler, text):
    matcher = compiled(compiler, WORDS).matcher()
    assert matcher.consume(TOKENIZER.encode(text))
    assert matcher.accepting


@pytest.mark.parametrize(
    "text",
    ['{"name": "read"}', "```json", "```\n{", "`{", "[{", "<tool_call>", " {", "\n{", "", "``<"],
)
def test_what_begins_like_a_call_may_not(compiler, text):
    matcher = compiled(compiler, WORDS).matcher()
    assert not (matcher.consume(TOKENIZER.encode(text)) and matcher.accepting)


def test_words_are_asked_for_without_a_row():
    made, asked = words_of()
    assert NO_FURTHER_CALL in asked
    assert asked.endswith("<|im_start|>assistant\n")
    assert made.sampling(SamplingParams()).grammar == WORDS
    assert NO_CALL in words_of(follows_result=False)[1]


def test_words_are_asked_for_whoever_decides():
    assert NO_FURTHER_CALL in words_of(thresholds=None)[1]
    assert NO_FURTHER_CALL in words_of(tools=replace(TOOLS, decision="model"))[1]


def test_a_grammar_of_the_request_is_kept():
    made, _ = words_of()
    digits = replace(SamplingParams(), grammar=WORDS.regex("[0-9]+"))
    assert made.sampling(digits) == digits


def test_words_of_a_model_that_reasons_first_are_not_constrained():
    prompt = [*PROMPT, *TOKENIZER.encode("<think>\n")]
    made, asked = words_of(prompt=prompt)
    assert NO_FURTHER_CALL in asked
    assert made.sampling(SamplingParams()).grammar is None


@pytest.mark.parametrize(
    "options",
    [
        {"thresholds": None},
        {"tools": replace(TOOLS, decision="model")},
        {"tools": replace(TOOLS, choice=ToolChoice("none"))},
        {"prompt": [*PROMPT, *TOKENIZER.encode("<think>\n")]},
        {"info": replace(INFO, context_length=len(PROMPT) + 100)},
    ],
    ids=["not measured", "left to the model", "no call allowed", "reasons", "no room"],
)
def test_a_model_decides_itself(options):
    assert planner(**options) is None


@pytest.mark.parametrize(("in_loop", "kind"), [(False, "text"), (True, "call")])
def test_in_a_loop_a_single_tool_needs_no_more_evidence_than_one_of_five(in_loop, kind):
    falling = replace(MEASURED, fits=Threshold(1.5, -0.5))  # 0.70 with five tools
    made = planner(thresholds=falling, in_loop=in_loop, follows_result=False)
    digits = [math.log(0.37)] + [math.log(0.63)] + [-9.0] * 8
    made.decide([output(digits), output([math.log(0.9)])])
    assert ("call" if made.plan.calls else "text") == kind


def output(logprobs):
    timings = Timings(0.0, 0.0, 0.0, 0.0)
    return TokenBatch(
        "r", (1,), "x", timings, seed=0, token_id_logprobs=(tuple(logprobs),),
        finish_reason=FinishReason.LENGTH,
    )  # fmt: skip


def test_only_in_a_loop_a_call_is_read_where_words_were_asked_for():
    for in_loop in (False, True):
        made = planner(in_words=True, in_loop=in_loop)
        made.decide([])
        parser = made.parser()
        parts = [*parser.feed('{"name": "read", "arguments": {}}'), *parser.finish()]
        assert (type(parts[0]).__name__ == "CallBegun") is in_loop
