"""Grammars in the pipeline, against an oracle that replays the grammar for every token."""

from dataclasses import replace

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.grammar import Grammar
from engine.api.request import FinishReason
from engine.executors.reference_sampler import log_softmax
from engine.runtime.forking import child_request, fork_point, prompt_and_output_ids
from engine.runtime.intake import attach_matcher
from tests.fakes.grammars import NUMBERS, compiled, replayed_mask, toy_compiler
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle, toy_logits
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import EOS, VOCAB_SIZE, ToyTokenizer

SCHEMA = Grammar.json_schema(
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}},
        "required": ["n", "ok"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def compiler():
    compiler = toy_compiler()
    yield compiler
    compiler.close()


@pytest.fixture
def submit(compiler):
    """Submit to a pipeline as the engine does."""

    def submit(toy, request, parent=None):
        handle = toy.submit(request, parent=parent)
        if request.sampling.grammar is not None:
            start = compiled(compiler, request.sampling.grammar)
            attach_matcher(toy.sequences[request.request_id], start, vocab_size=VOCAB_SIZE)
        return handle

    return submit


def constrained(prompt, grammar, **params):
    return ask(prompt, grammar=grammar, ignore_eos=False, **params)


def expected(compiler, request, **options):
    return oracle(
        request, mask=replayed_mask(compiled(compiler, request.sampling.grammar)), **options
    )


def text(ids):
    return ToyTokenizer().decode([one for one in ids if one != EOS])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_equals_the_oracle_in_a_batch_with_unconstrained_rows(
    compiler, submit, temperature
):
    toy = ToyPipeline()
    sampling = {"temperature": temperature, "seed": 11, "max_tokens": 60}
    requests = [
        constrained("one", SCHEMA, **sampling),
        ask("two", **sampling),
        constrained("three", Grammar.regex(NUMBERS), **sampling),
        constrained("four", Grammar.choice(["left", "right", "left of it"]), **sampling),
        ask("five", **sampling),
    ]
    handles = [submit(toy, one) for one in requests]
    toy.run()
    for request, handle in zip(requests, handles, strict=True):
        output = handle.wait_result(0)
        if request.sampling.grammar is None:
            assert output.token_ids == oracle(request)
        else:
            assert output.token_ids == expected(compiler, request)
    toy.assert_idle()
    assert len(toy.table.grammars) == 0


@pytest.mark.parametrize("budget", [1, 3, 32])
def test_a_seeded_answer_replays_under_any_chunking(compiler, submit, budget):  # regression 50
    toy = ToyPipeline(budget=budget)
    request = constrained("a prompt of some length", SCHEMA, temperature=1.0, seed=5, max_tokens=50)
    handle = submit(toy, request)
    other = submit(toy, constrained("other", SCHEMA, temperature=1.0, seed=6, max_tokens=50))
    toy.run()
    assert handle.wait_result(0).token_ids == expected(compiler, request)
    assert other.wait_result(0).finish_reason is not FinishReason.ERROR


def test_a_preempted_answer_resumes_in_its_grammar(compiler, submit):  # regressions 22 and 50
    toy = ToyPipeline(blocks=16, block_size=4, allocator=BlockAllocator)
    requests = [
        constrained(f"prompt number {one}", Grammar.regex("[a-z]{20,40}"), temperature=1.0, seed=one,
                    max_tokens=40)
        for one in range(4)
    ]  # fmt: skip
    handles = [submit(toy, one) for one in requests]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    for request, handle in zip(requests, handles, strict=True):
        assert handle.wait_result(0).token_ids == expected(compiler, request)
    toy.assert_idle()


def test_a_completed_grammar_finishes_the_answer(submit):  # regression 53
    toy = ToyPipeline()
    handle = submit(toy, constrained("x", Grammar.regex("[0-9]{4}")))
    toy.run()
    output = handle.wait_result(0)
    assert output.finish_reason is FinishReason.STOP
    assert len(output.token_ids) == 4  # without a step for the end token
    assert output.text.isdecimal()


def test_eos_is_masked_until_the_grammar_accepts(submit):  # regression 53
    toy = ToyPipeline(force=dict.fromkeys(range(100), EOS))
    handle = submit(toy, constrained("x", Grammar.regex("[0-9]{3}(,[0-9]{3})*")))
    toy.run()
    output = handle.wait_result(0)
    assert output.finish_reason is FinishReason.STOP
    assert len(output.text) == 3
    assert output.token_ids[-1] == EOS


def test_a_truncated_answer_has_finish_reason_length(submit):
    toy = ToyPipeline()
    handle = submit(toy, constrained("x", Grammar.regex("[a-z]{50}"), max_tokens=7))
    toy.run()
    assert handle.wait_result(0).finish_reason is FinishReason.LENGTH


def test_the_last_allowed_token_is_a_stop_not_a_length(submit):
    toy = ToyPipeline()
    handle = submit(toy, constrained("x", Grammar.regex("[a-z]{7}"), max_tokens=7))
    toy.run()
    assert handle.wait_result(0).finish_reason is FinishReason.STOP


def test_stop_strings_and_tokens_still_stop(submit):
    toy = ToyPipeline()
    letters = Grammar.regex("[ab]{30}")
    cut = submit(toy, constrained("x", letters, stop=("b",), temperature=1.0, seed=1))
    token = submit(
        toy, constrained("x", letters, stop_token_ids=(ToyTokenizer().encode("b")[0],), seed=1)
    )
    toy.run()
    assert set(cut.wait_result(0).text) <= {"a"}
    assert cut.wait_result(0).finish_reason is FinishReason.STOP
    assert text(token.wait_result(0).token_ids[:-1]).strip("a") == ""


def test_bias_and_penalties_work_inside_the_mask(compiler, submit):
    toy = ToyPipeline()
    a, b, x = ToyTokenizer().encode("abx")
    request = constrained(
        "x", Grammar.regex("[ab]{30}"), logit_bias=((x, 100.0), (a, 5.0)), frequency_penalty=2.0
    )
    handle = submit(toy, request)
    toy.run()
    output = handle.wait_result(0)
    assert output.token_ids == expected(compiler, request)
    assert {a, b} == set(output.token_ids)


def test_logprobs_are_those_of_the_raw_logits(submit):
    toy = ToyPipeline()
    free = submit(toy, ask("x", logprobs=5, max_tokens=1))
    bound = submit(toy, constrained("x", Grammar.regex("QQ"), logprobs=5, max_tokens=1))
    toy.run()
    assert bound.wait_result(0).top_logprobs == free.wait_result(0).top_logprobs
    prompt, (forced,) = ToyTokenizer().encode("x"), ToyTokenizer().encode("Q")
    raw = log_softmax(toy_logits(prompt))
    assert bound.wait_result(0).token_ids == (forced,)
    assert bound.wait_result(0).logprobs[0] == pytest.approx(raw[forced])


def test_a_matcher_error_fails_only_its_request(compiler, submit):
    toy = ToyPipeline()
    broken = submit(toy, constrained("x", SCHEMA, max_tokens=40))
    sound_request = constrained("y", SCHEMA, max_tokens=40)
    sound = submit(toy, sound_request)
    toy.step(3)
    toy.sequences[broken.request_id].matcher.consume([EOS])  # the grammar is not there yet
    toy.run()
    output = broken.wait_result(0)
    assert output.finish_reason is FinishReason.ERROR
    assert output.error.startswith("The grammar could not be followed")
    assert sound.wait_result(0).token_ids == expected(compiler, sound_request)
    toy.assert_idle()


def test_rows_without_a_grammar_send_no_mask(submit):
    toy = ToyPipeline()
    seen = []
    toy.executor.watch = lambda plan: seen.append(len(plan.mask_rows))
    submit(toy, ask("x", max_tokens=3))
    toy.run()
    assert seen == [0, 0, 0]
    bound = submit(toy, constrained("x", Grammar.regex("[a-z]{3}")))
    submit(toy, ask("y", max_tokens=3))
    toy.run()
    assert seen[3:] == [1, 1, 1]
    assert bound.wait_result(0).finish_reason is FinishReason.STOP


def test_an_unfinished_prefill_has_no_mask(submit):
    toy = ToyPipeline(budget=4)
    seen = []
    toy.executor.watch = lambda plan: seen.append((plan.needs_logits.tolist(), len(plan.mask_rows)))
    submit(toy, constrained("a prompt of 20 token", Grammar.regex("[a-z]")))
    toy.run()
    assert seen == [([0], 0)] * 4 + [([1], 1)]


def test_forks_continue_their_parents_grammar(compiler, submit):  # regression 37
    toy = ToyPipeline(allocator=BlockAllocator)
    parent_request = constrained("x", Grammar.regex("[a-m]{5}[n-z]{5}"), temperature=1.0, seed=3)
    parent = submit(toy, parent_request)
    toy.step(6)
    sequence = toy.sequences[parent.request_id]
    tokens = prompt_and_output_ids(sequence)
    children = []
    for number, at in ((1, len(tokens)), (2, 4), (3, 1)):
        kept = tokens[: fork_point(sequence, len(tokens), at)]
        children.append(
            submit(toy, child_request(sequence, kept, number=number, sampling=None), sequence)
        )
    toy.run()
    whole = [parent, *children]
    texts = [text((*one.request.prompt_ids[1:], *one.wait_result(0).token_ids)) for one in whole]
    assert len(set(texts)) == 4
    for one in texts:
        assert len(one) == 10
        assert set(one[:5]) <= set("abcdefghijklm")
        assert set(one[5:]) <= set("nopqrstuvwxyz")


def test_a_fork_with_another_grammar_begins_it_at_the_fork(submit):  # regression 37
    toy = ToyPipeline(allocator=BlockAllocator)
    parent = submit(toy, constrained("x", Grammar.regex("[a-z]{12}")))
    toy.step(4)
    sequence = toy.sequences[parent.request_id]
    other = replace(parent.request.sampling, grammar=Grammar.regex("[0-9]{3}"))
    child = submit(
        toy,
        child_request(sequence, prompt_and_output_ids(sequence), number=1, sampling=other),
        sequence,
    )
    toy.run()
    assert child.wait_result(0).text.isdecimal()
    assert parent.wait_result(0).text.isalpha()


def test_masks_of_many_rows_come_from_one_parallel_call(compiler, submit):
    toy = ToyPipeline(rows=8, blocks=256)
    requests = [
        constrained(f"p{one}", Grammar.regex(NUMBERS), temperature=1.0, seed=one, max_tokens=30)
        for one in range(8)
    ]
    handles = [submit(toy, one) for one in requests]
    toy.run()
    for request, handle in zip(requests, handles, strict=True):
        assert handle.wait_result(0).token_ids == expected(compiler, request)


def test_mask_bits_beyond_the_vocabulary_are_ignored(submit):
    toy = ToyPipeline()
    submit(toy, constrained("x", Grammar.regex("[a-z]{3}")))

    def set_padding(plan):
        plan.mask_bits[:, -1] |= np.uint32(0xFFFFFFF8)  # ids from 99 on

    toy.executor.watch = set_padding
    toy.run()
