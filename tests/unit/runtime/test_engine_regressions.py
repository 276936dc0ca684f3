"""Bugs of other engines, by the numbers of `docs/reliability.md`, which names the tests of the rest."""

import gc
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason
from engine.batch.sequence import SequenceState
from engine.executors.base import StepResult
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, oracle
from tests.fakes.toy_pipeline import ToyPipeline

PATIENCE_S = 30


def test_24_an_abort_during_a_step_takes_effect_after_that_step():
    """The step's token is kept, as `RequestHandle.abort` documents; nothing is computed afterwards."""
    engine, executor = toy_engine()
    executor.gate = threading.Semaphore(0)
    engine.start()
    aborted = engine.submit(ask("hello", max_tokens=60))
    assert executor.entered.acquire(timeout=PATIENCE_S)
    other = engine.submit(ask("world", max_tokens=20))
    for _ in range(3):
        executor.gate.release()
        assert executor.entered.acquire(timeout=PATIENCE_S)
    aborted.abort()  # the fourth step computes meanwhile
    assert not aborted.finished
    executor.gate.release(100)
    output = aborted.wait_result(PATIENCE_S)
    assert output.finish_reason is FinishReason.ABORT
    assert output.token_ids == oracle(aborted.request)[:4]
    assert other.wait_result(PATIENCE_S).token_ids == oracle(other.request)
    engine.shutdown()
    assert [len(rows) for rows, _ in executor.steps] == [1, 2, 2, 2, *[1] * 17]
    assert aborted.wait_result(0) == output
    totals = engine.snapshot().totals
    assert totals.generation_tokens == 4 + 20
    assert (totals.finished["abort"], totals.finished["length"]) == (1, 1)
    assert engine.snapshot().blocks.active == 0


def test_26_a_reused_row_keeps_nothing_of_its_last_request():
    """mini-sglang #58, #103."""
    toy = ToyPipeline(rows=1)
    loud = ask(
        "loud", temperature=1.5, seed=1, top_k=3, logprobs=2, logit_bias=((5, 9.0),),
        repetition_penalty=1.8, presence_penalty=1.0, stop=("zzz",), stop_token_ids=(1, 2, 3),
    )  # fmt: skip
    plain = ask("plain", max_tokens=30)
    first, second = toy.submit(loud), toy.submit(plain)
    toy.run()
    batch = second.drain()
    assert batch.token_ids == oracle(plain)
    assert batch.logprobs == batch.top_logprobs == ()
    assert toy.table.logprob_rows == toy.table.top_rows == 0
    assert not toy.table.stop_string_rows
    assert first.drain().token_ids == oracle(loud)


def test_30_ten_thousand_requests_with_random_aborts_leak_nothing():
    """With shared prefixes, forks, preemptions, and a pool so small that its blocks are swapped."""
    toy = ToyPipeline(
        blocks=14, rows=8, context=32, budget=8, allocator=BlockAllocator, swap=30, queue=10_000
    )
    toy.executor.execute = lambda plan: _write_kv_and_sample_ones(toy.executor, plan)
    random = np.random.default_rng(30)
    aborted_in = Counter()
    submitted = 0

    def traffic(until):
        nonlocal submitted
        while submitted < until:
            for _ in range(random.integers(1, 9)):
                tokens = [int(random.integers(1, 60))] * int(random.integers(1, 13))
                toy.submit(ask(tokens, max_tokens=int(random.integers(1, 9))))
                submitted += 1
            for _ in range(random.integers(1, 4)):
                toy.pipeline.step()
                toy.deliver()
            toy.check()
            if random.random() < 0.3 and len(toy.pipeline.scheduler.running):
                toy.pipeline.scheduler.preempt(int(toy.pipeline.scheduler.running[-1]))
            live = [handle for handle in toy.handles if not handle.finished]
            if live:
                submitted += len(toy.fork(live[0], n=2))
            for handle in live[:: int(random.integers(4, 12))]:
                aborted_in[_state(toy, toy.sequences[handle.request_id])] += 1
                handle.abort()
            if random.random() < 0.02:
                toy.handles.clear()  # which aborts requests that still run
            _forget_finished(toy)
        toy.run()
        toy.assert_idle()
        assert toy.blocks.counts().active == 0
        assert sum(toy.counters.totals().finished.values()) == submitted
        toy.handles.clear()
        _forget_finished(toy)

    traffic(3_000)  # more steps than the step log keeps
    before = _live_objects()
    traffic(11_000)
    assert (_live_objects() - before).total() < 100  # a leak of a hundredth of the requests
    assert aborted_in.keys() == {"waiting", "prefilling", "decoding", "preempted"}
    assert min(aborted_in.values()) > 20
    assert toy.counters.totals().finished["length"] > 1_000
    assert toy.executor.swapped_in > 50


def _state(toy, sequence):
    if sequence.state is not SequenceState.RUNNING:
        return sequence.state.name.lower()
    return "decoding" if toy.table.num_tokens[sequence.row] > sequence.num_prompt else "prefilling"


def _forget_finished(toy):
    toy.ended.clear()
    toy.handles[:] = [handle for handle in toy.handles if not handle.finished]
    toy.sequences = {key: one for key, one in toy.sequences.items() if not one.finished}


def _live_objects():
    """The number of live objects of each of the engine's types."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__name__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith("engine."))


def _write_kv_and_sample_ones(executor, plan):
    """A step of the toy executor without its logits, which would take most of the time."""
    rows = np.repeat(plan.rows, np.diff(plan.query_start))
    blocks = plan.block_tables[rows, plan.positions // executor.block_size]
    executor.kv[blocks, plan.positions % executor.block_size] = plan.token_ids
    result = StepResult.empty(len(plan.rows))
    result.sampled[plan.needs_logits != 0] = 1
    return result


def test_31_unloading_ends_what_runs_waits_and_is_preempted():
    """Every finish is delivered, no block stays in use, and the executor is closed last."""
    engine, executor = toy_engine(toy_config(blocks=20, max_num_seqs=4))
    executor.gate = threading.Semaphore(0)
    engine.start()
    requests = [ask(f"number {i}", max_tokens=40) for i in range(8)]
    handles = [engine.submit(request) for request in requests]
    while engine.snapshot().totals.preemptions == 0:
        assert executor.entered.acquire(timeout=PATIENCE_S)
        assert not executor.closed
        executor.gate.release()
    assert executor.entered.acquire(timeout=PATIENCE_S)
    assert engine.snapshot().waiting > 0
    stopper = threading.Thread(target=engine.shutdown)
    stopper.start()
    executor.gate.release(10_000)
    stopper.join(PATIENCE_S)
    assert not stopper.is_alive()
    for request, handle in zip(requests, handles, strict=True):
        output = handle.wait_result(0)
        assert output.finish_reason is FinishReason.ABORT
        assert output.token_ids == oracle(request)[: len(output.token_ids)]
    assert executor.closed
    snapshot = engine.snapshot()
    assert (snapshot.running, snapshot.waiting, snapshot.blocks.active) == (0, 0, 0)


def test_57_two_engines_in_a_process_answer_as_one():
    """One fails midway; the other is not affected."""
    (first, executor), (second, _) = toy_engine(), toy_engine()
    executor.fail_with = [RuntimeError("out of luck")]
    first.start()
    second.start()
    requests = [ask(f"number {i}") for i in range(10)]
    lucky = [second.submit(request) for request in requests]
    first.submit(ask("hello")).wait_result(PATIENCE_S)
    again = [first.submit(request) for request in requests]
    for handles in (lucky, again):
        outputs = [handle.wait_result(PATIENCE_S) for handle in handles]
        assert [output.token_ids for output in outputs] == [oracle(each) for each in requests]
    first.shutdown()
    assert second.submit(requests[0]).wait_result(PATIENCE_S).token_ids == oracle(requests[0])
    second.shutdown()
    assert second.snapshot().last_error is None


@pytest.mark.parametrize("asked", [64 * 128, 65 * 128 - 1])
def test_58_the_pools_size_is_stated_and_within_what_was_asked(asked):
    """vLLM #13603, transformers #44896. `asked`: bytes; a block has 128."""
    executor = ToyExecutor(64, 4)  # which fails to load with another number of blocks
    config = replace(toy_config(), kv_cache_bytes=asked)
    engine, _ = toy_engine(config, executor=executor, context=512)
    engine.start()
    engine.wait_ready(PATIENCE_S)
    blocks = engine.snapshot().blocks
    assert (blocks.total, blocks.block_size, blocks.block_bytes) == (64, 4, 128)
    assert asked - blocks.block_bytes < blocks.total * blocks.block_bytes <= asked
    with pytest.raises(InvalidRequest, match="the KV pool holds 256"):
        engine.submit(ask([1] * 300, max_tokens=1))
    engine.shutdown()


def test_61_a_forked_process_gets_an_error_instead_of_an_engine():
    script = """
import os
from engine.api.errors import EngineUnavailable
from tests.fakes.toy_engine import ask, toy_engine

engine, _ = toy_engine()
engine.start()
engine.submit(ask("hello")).wait_result(30)
child = os.fork()
if child == 0:
    try:
        engine.submit(ask("hello"))
    except EngineUnavailable as error:
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
engine.submit(ask("hello")).wait_result(30)
engine.shutdown()
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "fine\n", done.stderr


def test_62_the_engine_imports_no_framework():
    script = """
import sys
import engine.runtime.engine, engine.clients.in_process
heavy = {"torch", "transformers", "triton", "textual", "fastapi", "prometheus_client"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_process_that_forgets_to_shut_down_still_exits():
    script = """
from tests.fakes.toy_engine import ask, toy_engine

engine, executor = toy_engine()
engine.start()
engine.submit(ask("hello", max_tokens=200)).wait_result(30)
lost = engine.submit(ask("hello", max_tokens=200))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
