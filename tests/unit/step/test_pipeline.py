"""Applied steps: finishes, failures and delivery to readers."""

from itertools import count

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.api.errors import ExecutorError, InvalidRequest
from engine.api.events import FirstToken, RequestFinished, StepFailed
from engine.api.request import FinishReason, SamplingParams
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle, toy_logits
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import EOS, ToyTokenizer


def spell(text):
    """Forced outputs whose text is given."""
    return dict(enumerate(ToyTokenizer().encode(text)))


def test_max_tokens():
    toy = ToyPipeline()
    handle = toy.submit(ask("hi", max_tokens=3))
    toy.run()
    batch = handle.drain()
    assert len(batch.token_ids) == 3
    assert batch.finish_reason is FinishReason.LENGTH
    assert handle.drain() is None


def test_the_models_eos_token_finishes_and_is_not_text():
    toy = ToyPipeline(force=spell("ab") | {2: EOS})
    handle = toy.submit(ask("hi", ignore_eos=False))
    toy.run()
    batch = handle.drain()
    assert batch.token_ids[-1] == EOS
    assert (batch.text, batch.finish_reason) == ("ab", FinishReason.STOP)


def test_an_ignored_eos_token_does_not_finish():
    toy = ToyPipeline(force={1: EOS})
    handle = toy.submit(ask("hi", ignore_eos=True, max_tokens=5))
    toy.run()
    assert len(handle.drain().token_ids) == 5


def test_stop_token_is_in_the_ids_and_not_in_the_text():
    toy = ToyPipeline(force=spell("abc"))
    stop = ToyTokenizer().encode("c")[0]
    handle = toy.submit(ask("hi", stop_token_ids=(stop,)))
    toy.run()
    batch = handle.drain()
    assert batch.token_ids == tuple(ToyTokenizer().encode("abc"))
    assert (batch.text, batch.finish_reason) == ("ab", FinishReason.STOP)


def test_a_stop_token_drained_before_the_finish_is_not_text():
    """The reader may drain the token before the step that finishes the request returns."""
    toy = ToyPipeline(force=spell("abc"))
    stop = ToyTokenizer().encode("c")[0]
    handle = toy.submit(ask("hi", stop_token_ids=(stop,), max_tokens=10))
    seen = []
    finish = toy.pipeline.finish

    def drain_first(*arguments):
        seen.append(handle.drain())
        finish(*arguments)

    toy.pipeline.finish = drain_first
    toy.run()
    last = handle.drain()
    assert seen[0].text == "ab"
    assert seen[0].finish_reason is None
    assert (last.text, last.token_ids, last.finish_reason) == ("", (), FinishReason.STOP)


def test_stop_string_across_tokens_is_cut():
    toy = ToyPipeline(force=spell("one END two"))
    handle = toy.submit(ask("hi", stop=("END",), max_tokens=30))
    toy.run()
    batch = handle.drain()
    assert (batch.text, batch.finish_reason) == ("one ", FinishReason.STOP)
    assert ToyTokenizer().decode(batch.token_ids) == "one END"


def test_included_stop_string_is_kept():
    toy = ToyPipeline(force=spell("one END two"))
    handle = toy.submit(ask("hi", stop=("END",), include_stop=True, max_tokens=30))
    toy.run()
    assert handle.drain().text == "one END"


def test_a_partial_stop_string_is_held_back():
    toy = ToyPipeline(force=spell("ENERGY"))
    handle = toy.submit(ask("hi", stop=("END",), max_tokens=6))
    texts = []
    while toy.pipeline.has_work:
        toy.step()
        batch = handle.drain()
        texts.append(batch.text)
    assert texts == ["", "", "EN", "ER", "G", "Y"]


def test_held_back_text_is_flushed_at_the_finish():
    toy = ToyPipeline(force=spell("xEN"))
    handle = toy.submit(ask("hi", stop=("END",), max_tokens=3))
    toy.run()
    assert handle.drain().text == "xEN"


def test_incomplete_characters_are_not_emitted():
    toy = ToyPipeline(force=spell("é"))
    handle = toy.submit(ask("hi", max_tokens=2))
    toy.step()
    assert handle.drain().text == ""
    toy.step()
    assert handle.drain().text == "é"


def test_stop_string_of_split_characters():
    toy = ToyPipeline(force=spell("aéb"))
    handle = toy.submit(ask("hi", stop=("é",), max_tokens=9))
    toy.run()
    batch = handle.drain()
    assert (batch.text, batch.finish_reason) == ("a", FinishReason.STOP)


def test_draining_at_every_step_equals_draining_once():
    request = ask("hello", max_tokens=30, logprobs=2)
    often, once = ToyPipeline(), ToyPipeline()
    handle = often.submit(request)
    batches = []
    while often.pipeline.has_work:
        often.step()
        batches.append(handle.drain())
    whole = once.submit(request)
    once.run()
    last = whole.drain()
    assert sum((b.token_ids for b in batches), ()) == last.token_ids
    assert "".join(b.text for b in batches) == last.text
    assert sum((b.logprobs for b in batches), ()) == last.logprobs
    assert sum((b.top_logprobs for b in batches), ()) == last.top_logprobs
    assert handle.wait_result(0).text == last.text


def test_logprobs_are_of_raw_logits():
    import numpy as np

    toy = ToyPipeline()
    request = ask(
        "hello", max_tokens=1, logprobs=4, temperature=0.3, seed=1, logit_bias=((5, 9.0),)
    )
    handle = toy.submit(request)
    toy.run()
    batch = handle.drain()
    logits = toy_logits(request.prompt_ids).astype(np.float64)
    logprobs = logits - np.log(np.exp(logits).sum())
    assert batch.logprobs[0] == pytest.approx(logprobs[batch.token_ids[0]], abs=1e-5)
    best = np.argsort(-logprobs)[:4]
    assert [top.token_id for top in batch.top_logprobs[0]] == best.tolist()


def test_zero_alternatives_give_logprobs_and_empty_tops():
    toy = ToyPipeline()
    handle = toy.submit(ask("hello", max_tokens=3, logprobs=0))
    toy.run()
    batch = handle.drain()
    assert len(batch.logprobs) == 3
    assert batch.top_logprobs == ((), (), ())


# ---- aborts, in every state ----


def test_23_abort_while_waiting():
    toy = ToyPipeline(rows=1)
    toy.submit(ask("first", max_tokens=4))
    toy.step()
    waiting = toy.submit(ask("second"))
    waiting.abort()
    assert waiting.drain().finish_reason is FinishReason.ABORT
    toy.run()
    toy.assert_idle()


def test_23_abort_in_chunked_prefill():
    toy = ToyPipeline(budget=4)
    handle = toy.submit(ask(range(1, 30)))
    toy.step(2)
    assert 0 < toy.blocks.num_free < toy.blocks.num_blocks
    handle.abort()
    toy.assert_idle()
    assert handle.drain().token_ids == ()


def test_23_abort_while_decoding_keeps_what_was_generated():
    toy = ToyPipeline()
    request = ask("hello")
    handle = toy.submit(request)
    toy.step(5)
    handle.abort()
    toy.assert_idle()
    batch = handle.drain()
    assert batch.token_ids == oracle(request)[:5]
    assert batch.finish_reason is FinishReason.ABORT


def test_23_abort_while_preempted():
    toy = ToyPipeline(blocks=8, block_size=4)
    old = toy.submit(ask(range(1, 8), max_tokens=20))
    victim = toy.submit(ask(range(2, 9), max_tokens=20))
    while not toy.counters.totals().preemptions:
        toy.step()
    assert toy.row(victim) == -1
    victim.abort()
    batch = victim.drain()
    assert batch.finish_reason is FinishReason.ABORT
    assert batch.token_ids
    old.abort()
    toy.assert_idle()


def test_abort_after_the_finish_changes_nothing():
    toy = ToyPipeline()
    handle = toy.submit(ask("hello", max_tokens=2))
    toy.run()
    handle.abort()
    assert handle.drain().finish_reason is FinishReason.LENGTH
    assert toy.counters.totals().finished["abort"] == 0


def test_a_dropped_handle_aborts_its_request():
    toy = ToyPipeline()
    handle = toy.submit(ask("hello", max_tokens=100))
    toy.step()
    assert handle.has_new_output()
    toy.handles.clear()
    del handle
    toy.assert_idle()
    assert toy.counters.totals().finished["abort"] == 1


def test_leaving_a_handles_context_aborts_its_request():
    toy = ToyPipeline()
    with toy.submit(ask("hello", max_tokens=100)) as handle:
        toy.step()
    toy.assert_idle()
    assert handle.drain().finish_reason is FinishReason.ABORT


# ---- failures ----


def test_an_executor_error_fails_the_requests_of_that_step_and_no_others():
    toy = ToyPipeline(rows=2)
    failures = []
    toy.events.subscribe(StepFailed, failures.append)
    running = [toy.submit(ask(f"r{i}")) for i in range(2)]
    waiting_request = ask("later")
    waiting = toy.submit(waiting_request)
    toy.step()
    toy.executor.fail_with = [ExecutorError("the kernel gave up")]
    toy.step()
    for handle in running:
        batch = handle.drain()
        assert batch.finish_reason is FinishReason.ERROR
        assert batch.error == "The step failed: the kernel gave up."
    assert toy.blocks.num_free == toy.blocks.num_blocks
    assert failures[0].requests == 2
    assert toy.pipeline.last_error[0] == "The step failed: the kernel gave up."
    toy.run()
    assert waiting.drain().token_ids == oracle(waiting_request)


def test_a_rust_panic_fails_the_step():
    class PanicError(BaseException):
        pass

    toy = ToyPipeline()
    handle = toy.submit(ask("hello"))
    toy.executor.fail_with = [PanicError()]
    toy.run()
    assert handle.drain().error == "The step failed: PanicError."
    toy.assert_idle()


def test_nan_logits_fail_one_request():
    toy = ToyPipeline()
    good_request = ask("good")
    bad, good = toy.submit(ask("bad!")), toy.submit(good_request)
    marker = ToyTokenizer().encode("!")[0]
    toy.executor.poison = lambda history: len(history) == 7 and history[3] == marker
    toy.run()
    batch = bad.drain()
    assert batch.finish_reason is FinishReason.ERROR
    assert "not a number" in batch.error
    assert len(batch.token_ids) == 3
    assert good.drain().token_ids == oracle(good_request)
    toy.assert_idle()


def test_a_row_that_fails_beside_chunked_prefills_fails_alone():
    toy = ToyPipeline(budget=6)
    long_request = ask(range(1, 40))
    bad = toy.submit(ask("bad!"))
    long = toy.submit(long_request)
    toy.executor.poison = lambda history: len(history) == 5
    toy.run()
    assert bad.drain().finish_reason is FinishReason.ERROR
    assert long.drain().token_ids == oracle(long_request)


def test_a_detokenizer_that_raises_fails_only_its_request():
    toy = ToyPipeline()
    other_request = ask("other")
    broken, other = toy.submit(ask("hi", stop=("zzz",))), toy.submit(other_request)

    def explode(ids):
        raise ValueError("no such token")

    toy.sequences[broken.request_id].detokenizer.feed = explode
    toy.run()
    assert broken.drain().error == "The answer could not be decoded: no such token."
    assert other.drain().token_ids == oracle(other_request)


def test_a_failing_scheduler_fails_all_requests_and_the_next_one_runs():
    toy = ToyPipeline()
    handle = toy.submit(ask("hello"))
    toy.step()
    plan = toy.pipeline.scheduler._plans.build
    toy.pipeline.scheduler._plans.build = lambda *_: 1 / 0
    toy.step()
    toy.pipeline.scheduler._plans.build = plan
    assert handle.drain().error == "Scheduling failed: division by zero."
    toy.assert_idle()
    request = ask("again")
    again = toy.submit(request)
    toy.run()
    assert again.drain().token_ids == oracle(request)


# ---- events ----


def test_events_report_first_tokens_and_finishes():
    toy = ToyPipeline()
    facts = []
    toy.events.subscribe(FirstToken, facts.append)
    toy.events.subscribe(RequestFinished, facts.append)
    toy.clock.tick = 0.5
    handle = toy.submit(ask("hello", max_tokens=3))
    toy.run()
    first, end = facts
    assert (type(first), type(end)) == (FirstToken, RequestFinished)
    timings = handle.drain().timings
    assert first.ttft == timings.ttft
    assert (end.prompt_tokens, end.output_tokens) == (5, 3)
    assert timings.queued < timings.scheduled < timings.first_token < timings.last_token


def test_timings_survive_preemption():
    toy = ToyPipeline(blocks=8, block_size=4)
    toy.clock.tick = 1.0
    toy.submit(ask(range(1, 8), max_tokens=20))
    victim = toy.submit(ask(range(2, 9), max_tokens=20))
    toy.step()
    before = victim.drain().timings
    toy.run()
    after = victim.drain().timings
    assert toy.counters.totals().preemptions
    assert (after.scheduled, after.first_token) == (before.scheduled, before.first_token)
    assert after.last_token > before.last_token


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((), "empty"),
        ((1, 99), "vocabulary of 99"),
        ((-1,), "vocabulary"),
        ((1.5,), "integers"),
        ((True, False), "integers"),
        (tuple(range(90)) * 3, "context length is 256 tokens"),
    ],
)
def test_invalid_prompts_are_refused(ids, words):
    with pytest.raises(InvalidRequest, match=words) as caught:
        ToyPipeline().submit(ask(ids))
    assert caught.value.param == "prompt"


def test_a_prompt_larger_than_the_pool_is_refused():
    with pytest.raises(InvalidRequest, match="KV pool holds 16"):
        ToyPipeline(blocks=4, block_size=4).submit(ask(range(17)))


def test_sampling_parameters_are_checked_at_submission():
    from engine.api.request import Request

    with pytest.raises(InvalidRequest) as caught:
        ToyPipeline().submit(Request((1,), SamplingParams(top_p=0.0)))
    assert caught.value.param == "top_p"


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 70), min_size=1, max_size=6),
    invalid=st.dictionaries(st.integers(0, 12), st.integers(0, 7), max_size=3),
    speculation=st.booleans(),
)
@example(lengths=[44, 1, 14, 5], invalid={3: 0}, speculation=False)  # then shorter chunks
def test_an_invalid_entry_fails_its_own_request_only(lengths, invalid, speculation):
    """Nothing was computed in such a step, so the other requests go on as if it had not been."""
    toy = ToyPipeline(speculation=speculation)
    check, failed, steps = toy.executor.watch, set(), count()

    def refuse(plan):
        check(plan)
        entry = invalid.get(next(steps))
        if entry is not None:
            entry %= len(plan.rows)
            failed.add(toy.table.sequence(int(plan.rows[entry])).request_id)
            raise ExecutorError(f"Step entry {entry} is invalid.", entry=entry)

    toy.executor.watch = refuse
    requests = [ask("ab" * length, max_tokens=9) for length in lengths]
    handles = [toy.submit(request) for request in requests]
    while toy.pipeline.has_work:
        toy.step()
        toy.check()
    for request, handle in zip(requests, handles, strict=True):
        batch = handle.drain()
        if request.request_id in failed:
            assert batch.finish_reason is FinishReason.ERROR
            assert "is invalid" in batch.error
        else:
            assert batch.token_ids == oracle(request)
    toy.assert_idle()
