"""`AsyncPravahaEngine` and its handles, on a real thread with the toy executor.

No test sleeps: the executor can wait at a gate, one permit per step.
"""

import asyncio
import gc
import threading
import time
from contextlib import contextmanager

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, ModelError, QueueFull
from engine.api.events import EngineStateChanged, RequestFinished, RequestQueued
from engine.api.request import FinishReason, Request
from engine.api.snapshot import BlockState, EngineState
from engine.clients.engine_client import EngineClient
from engine.clients.in_process import InProcessClient
from engine.runtime.snapshot_publisher import SNAPSHOT_PERIOD_S, UNREAD_PERIOD_S
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, oracle, toy_model
from tests.fakes.toy_tokenizer import ToyTokenizer

PATIENCE_S = 30  # timeout of waits between threads; reached only on failure


@pytest.fixture
def engine():
    engine, _ = toy_engine()
    engine.start()
    engine.wait_ready(PATIENCE_S)
    yield engine
    engine.shutdown()


def assert_all_free(engine):
    blocks = engine.snapshot().blocks
    assert blocks.free + blocks.cached == blocks.total  # no block is in use; some are cached
    assert blocks.active == 0
    assert engine.wait_drained(PATIENCE_S)


def in_step(executor):
    """Wait until the engine's thread is inside a step."""
    assert executor.entered.acquire(timeout=PATIENCE_S)


# ---- yielded cores ----


class YieldingExecutor(ToyExecutor):
    """A toy executor that counts the cores it has yielded."""

    yielded = 0

    @contextmanager
    def yield_core(self):
        self.yielded += 1
        try:
            yield
        finally:
            self.yielded -= 1


def test_an_executor_that_can_yields_a_core():
    executor = YieldingExecutor(64, 4)
    engine, _ = toy_engine(executor_factory=lambda *args, **options: executor)
    with engine.yield_core():  # nothing is loaded yet
        assert executor.yielded == 0
    engine.start()
    engine.wait_ready(PATIENCE_S)
    with InProcessClient(engine).yield_core():
        assert executor.yielded == 1
    assert executor.yielded == 0
    engine.shutdown()


def test_yielding_a_core_has_no_effect_on_other_executors(engine):
    with engine.yield_core():
        assert engine.submit(ask([1, 2, 3], max_tokens=2)).wait_result(PATIENCE_S)


# ---- answers ----


async def test_answers_equal_the_oracle(engine):
    requests = [ask("x" * n, max_tokens=3 + n) for n in range(1, 20)]
    outputs = await asyncio.gather(*(engine.submit(request).result() for request in requests))
    for request, output in zip(requests, outputs, strict=True):
        assert output.token_ids == oracle(request)
        assert output.text == ToyTokenizer().decode(output.token_ids)
        assert output.prompt_tokens == len(request.prompt_ids)
    assert_all_free(engine)


async def test_streaming_gives_the_same_as_waiting(engine):
    request = ask("hello", max_tokens=50, logprobs=1)
    handle = engine.submit(request)
    batches = [batch async for batch in handle]
    whole = await handle.result()
    assert sum((batch.token_ids for batch in batches), ()) == whole.token_ids == oracle(request)
    assert "".join(batch.text for batch in batches) == whole.text
    assert sum((batch.top_logprobs for batch in batches), ()) == whole.top_logprobs
    assert [b.finish_reason for b in batches[:-1]] == [None] * (len(batches) - 1)
    assert batches[-1].finish_reason is FinishReason.LENGTH


def test_threads_without_a_loop_can_wait(engine):
    request = ask("hello")
    assert engine.submit(request).wait_result(PATIENCE_S).token_ids == oracle(request)


def test_waiting_has_a_limit(gated):
    engine, _ = gated
    handle = engine.submit(ask("hello"))
    with pytest.raises(TimeoutError):
        handle.wait_result(0)


def test_a_generated_seed_is_reported_and_reproduces_the_output(engine):
    first = engine.submit(ask("hello", temperature=1.0)).wait_result(PATIENCE_S)
    again = engine.submit(ask("hello", temperature=1.0, seed=first.seed)).wait_result(PATIENCE_S)
    assert again.token_ids == first.token_ids
    assert again.seed == first.seed


async def test_two_event_loops_may_share_an_engine(engine):
    request = ask("hello", max_tokens=40)

    def other_loop():
        return asyncio.run(collect(engine, request_again))

    async def collect(engine, request):
        return sum([batch.token_ids async for batch in engine.submit(request)], ())

    request_again = ask("world", max_tokens=40)
    mine, theirs = await asyncio.gather(collect(engine, request), asyncio.to_thread(other_loop))
    assert mine == oracle(request)
    assert theirs == oracle(request_again)


# ---- refusals ----


def test_a_full_queue_refuses_requests():
    engine, executor = toy_engine(toy_config(max_queue=2, max_num_seqs=1))
    executor.gate = threading.Semaphore(0)
    engine.start()
    try:
        running = engine.submit(ask("running"))
        in_step(executor)
        waiting = [engine.submit(ask("waiting")) for _ in range(2)]
        with pytest.raises(QueueFull):
            engine.submit(ask("too many"))
        waiting[0].abort()
        executor.gate.release(10**4)
        assert running.wait_result(PATIENCE_S).finish_reason is FinishReason.LENGTH
        assert waiting[1].wait_result(PATIENCE_S).finish_reason is FinishReason.LENGTH
        assert engine.submit(ask("now")).wait_result(PATIENCE_S)
    finally:
        executor.gate.release(10**4)
        engine.shutdown()


def test_an_id_in_use_is_refused_and_the_other_request_lives(gated):
    engine, executor = gated
    first = engine.submit(Request((1, 2), ask().sampling, "twin"))
    with pytest.raises(InvalidRequest, match="twin"):
        engine.submit(Request((3,), ask().sampling, "twin"))
    executor.gate.release(10**4)
    assert first.wait_result(PATIENCE_S).finish_reason is FinishReason.LENGTH
    engine.submit(Request((3,), ask().sampling, "twin")).wait_result(PATIENCE_S)


def test_submitting_to_an_engine_that_was_not_started_is_refused():
    engine, _ = toy_engine()
    with pytest.raises(EngineUnavailable, match="not started"):
        engine.submit(ask())
    engine.shutdown()


# ---- aborts ----


async def test_abort_frees_blocks_within_a_step(gated):
    engine, executor = gated
    other = engine.submit(ask("other"))
    in_step(executor)
    handle = engine.submit(ask("hello", max_tokens=100))
    executor.gate.release(1)
    in_step(executor)
    handle.abort()  # a step is in flight: its result must be dropped
    executor.gate.release(1)
    in_step(executor)  # the next step has begun, so the boundary between them is over
    blocks = engine.snapshot().blocks
    assert blocks.active == 2  # of the other request: five prompt tokens and one generated
    output = await handle.result()
    assert output.finish_reason is FinishReason.ABORT
    executor.gate.release(10**4)
    await other.result()
    assert_all_free(engine)


async def test_abort_by_id_while_waiting(gated):
    engine, executor = gated
    busy = [engine.submit(ask(f"busy {i}")) for i in range(8)]
    in_step(executor)
    waiting = engine.submit(ask("waiting"))
    engine.abort(waiting.request_id)
    engine.abort("nobody")
    executor.gate.release(10**4)
    output = await waiting.result()
    assert (output.finish_reason, output.token_ids) == (FinishReason.ABORT, ())
    await asyncio.gather(*(handle.result() for handle in busy))
    assert_all_free(engine)


async def test_a_cancelled_reader_that_drops_its_handle_aborts(gated):
    engine, executor = gated
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    engine.events.subscribe(RequestFinished, lambda _: loop.call_soon_threadsafe(ended.set))

    async def read():
        async for _ in engine.submit(ask("hello", max_tokens=200)):
            pass

    task = asyncio.create_task(read())
    await asyncio.to_thread(in_step, executor)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    executor.gate.release(10**4)
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    assert engine.snapshot().totals.finished["abort"] == 1
    assert_all_free(engine)


def test_random_aborts_leak_nothing(engine):
    """Regression 30 on a small scale; `tests/property/test_traffic.py` is the thorough test."""
    for round_number in range(30):
        handles = [engine.submit(ask("x" * (1 + n), max_tokens=30)) for n in range(12)]
        for handle in handles[round_number % 3 :: 3]:
            handle.abort()
        for handle in handles:
            handle.wait_result(PATIENCE_S)
    assert_all_free(engine)
    assert sum(engine.snapshot().totals.finished.values()) == 30 * 12


def test_readers_race_with_preemption_and_row_reuse():
    """Readers copy rows while the engine preempts and reuses them; no token is lost or another row's."""
    engine, _ = toy_engine(toy_config(blocks=14, max_num_seqs=6))
    engine.start()
    requests = [ask("r" * (1 + n % 5) + chr(40 + n), max_tokens=25) for n in range(60)]
    read = {}

    def reader(request, handle):
        batches = []
        while not batches or batches[-1].finish_reason is None:
            batch = handle.drain()
            if batch is not None:
                batches.append(batch)
        read[request.request_id] = sum((batch.token_ids for batch in batches), ())

    pairs = [(request, engine.submit(request)) for request in requests]
    # Few at a time: they spin to hit every phase of a step.
    for begin in range(0, len(pairs), 3):
        threads = [threading.Thread(target=reader, args=pair) for pair in pairs[begin : begin + 3]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert engine.snapshot().totals.preemptions > 0
    for request in requests:
        assert read[request.request_id] == oracle(request)
    engine.shutdown()


# ---- failures ----


def test_an_executor_error_leaves_the_engine_alive(gated):
    engine, executor = gated
    handle = engine.submit(ask("hello"))
    in_step(executor)
    executor.fail_with = [RuntimeError("out of luck")]
    executor.gate.release(10**4)
    output = handle.wait_result(PATIENCE_S)
    assert (output.finish_reason, output.error) == (
        FinishReason.ERROR,
        "The step failed: out of luck.",
    )
    request = ask("again")
    assert engine.submit(request).wait_result(PATIENCE_S).token_ids == oracle(request)
    snapshot = engine.snapshot()
    assert snapshot.state is EngineState.READY
    assert snapshot.last_error == "The step failed: out of luck."
    assert snapshot.last_error_time is not None


def test_a_model_that_cannot_be_opened():
    def refuse(config):
        raise ModelError("The file is damaged.")

    engine, _ = toy_engine(model_opener=refuse)
    engine.start()
    with pytest.raises(EngineUnavailable, match="damaged"):
        engine.wait_ready(PATIENCE_S)
    with pytest.raises(EngineUnavailable, match="damaged"):
        engine.submit(ask())
    with pytest.raises(EngineUnavailable, match="damaged"):
        _ = engine.tokenizer
    snapshot = engine.snapshot()
    assert snapshot.state is EngineState.UNLOADED
    assert snapshot.last_error == "toy could not be loaded: The file is damaged."
    engine.shutdown()
    assert engine.snapshot().state is EngineState.STOPPED


def test_requests_queued_while_loading_fail_when_loading_does():
    loading, go = threading.Event(), threading.Event()

    def explode(model, config, **_):
        loading.set()
        go.wait(PATIENCE_S)
        raise ModelError("No room for the weights.")

    engine, _ = toy_engine(executor_factory=explode)
    engine.start()
    handle = engine.submit(ask("early"))
    assert loading.wait(PATIENCE_S)
    assert engine.snapshot().state is EngineState.LOADING
    go.set()
    output = handle.wait_result(PATIENCE_S)
    assert (output.finish_reason, output.error) == (
        FinishReason.ERROR,
        "toy could not be loaded: No room for the weights.",
    )
    engine.shutdown()


@pytest.mark.parametrize(
    ("error", "logged"),
    [(ModelError("The file is damaged."), []), (ZeroDivisionError(), ["Loading toy failed."])],
)
def test_only_unexpected_failures_leave_a_traceback_in_the_log(error, logged, caplog):
    def explode(config):
        raise error

    engine, _ = toy_engine(model_opener=explode)
    engine.start()
    with pytest.raises(EngineUnavailable):
        engine.wait_ready(PATIENCE_S)
    engine.shutdown()
    assert [record.getMessage() for record in caplog.records] == logged
    assert all(record.exc_info for record in caplog.records)


# ---- loading ----


def loader(executor, loading, go):
    """An executor factory that reports half, waits for `go`, reports again."""

    def load(model, config, *, num_blocks, max_model_len, progress):
        progress(0.5)
        loading.set()
        go.wait(PATIENCE_S)
        progress(0.9)
        return executor

    return load


def test_requests_queue_while_loading_and_progress_is_seen():
    loading, go = threading.Event(), threading.Event()
    engine, _ = toy_engine(executor_factory=loader(ToyExecutor(64, 4), loading, go))
    engine.start()
    request = ask("early")
    handle = engine.submit(request)
    assert loading.wait(PATIENCE_S)
    snapshot = engine.snapshot()
    assert (snapshot.state, snapshot.loading_progress) == (EngineState.LOADING, 0.5)
    assert snapshot.model is None
    with pytest.raises(EngineUnavailable, match="loading"):
        _ = engine.model_info
    with pytest.raises(TimeoutError):
        engine.wait_ready(0)
    go.set()
    assert handle.wait_result(PATIENCE_S).token_ids == oracle(request)
    assert engine.snapshot().loading_progress == 1.0
    assert engine.model_info.executor == "toy"
    engine.shutdown()


def test_a_request_aborted_while_loading_finishes_before_the_load():
    loading, go = threading.Event(), threading.Event()
    executor = ToyExecutor(64, 4)
    executor.gate = threading.Semaphore(0)
    engine, _ = toy_engine(executor=executor, executor_factory=loader(executor, loading, go))
    engine.start()
    handle = engine.submit(ask("early"))
    assert loading.wait(PATIENCE_S)
    handle.abort()
    go.set()
    assert handle.wait_result(PATIENCE_S).finish_reason is FinishReason.ABORT
    engine.shutdown()
    assert executor.steps == []


def test_shutdown_cancels_loading():
    loading, go = threading.Event(), threading.Event()
    engine, _ = toy_engine(executor_factory=loader(ToyExecutor(64, 4), loading, go))
    engine.start()
    handle = engine.submit(ask("early"))
    assert loading.wait(PATIENCE_S)
    stopper = threading.Thread(target=engine.shutdown)
    stopper.start()
    go.set()
    stopper.join(PATIENCE_S)
    assert handle.wait_result(PATIENCE_S).finish_reason is FinishReason.ABORT
    assert engine.snapshot().state is EngineState.STOPPED
    with pytest.raises(EngineUnavailable):
        engine.wait_ready(0)


# ---- draining and stopping ----


def test_draining_refuses_new_work_and_finishes_the_old(gated):
    engine, executor = gated
    requests = [ask(f"number {i}") for i in range(12)]  # more than there are rows
    handles = [engine.submit(request) for request in requests]
    in_step(executor)
    engine.drain()
    with pytest.raises(EngineUnavailable, match="shutting down"):
        engine.submit(ask("late"))
    assert not engine.wait_drained(0)
    executor.gate.release(10**4)
    assert engine.wait_drained(PATIENCE_S)
    for request, handle in zip(requests, handles, strict=True):
        assert handle.wait_result(0).token_ids == oracle(request)
    assert engine.snapshot().state is EngineState.DRAINING


def test_shutdown_aborts_the_rest_and_frees_everything(gated):
    engine, executor = gated
    handles = [engine.submit(ask(f"number {i}", max_tokens=200)) for i in range(12)]
    in_step(executor)
    executor.gate.release(1)
    in_step(executor)
    stopper = threading.Thread(target=engine.shutdown)
    stopper.start()
    executor.gate.release(1)
    stopper.join(PATIENCE_S)
    assert not stopper.is_alive()
    for handle in handles:
        assert handle.wait_result(0).finish_reason is FinishReason.ABORT
    assert executor.closed
    assert_all_free(engine)
    assert engine.snapshot().state is EngineState.STOPPED
    assert not engine._thread._thread.is_alive()
    engine.shutdown()  # again: nothing happens
    with pytest.raises(EngineUnavailable, match="stopped"):
        engine.submit(ask())


async def test_shutdown_wakes_coroutines(gated):
    engine, executor = gated
    tasks = [asyncio.create_task(engine.submit(ask("hello")).result()) for _ in range(3)]
    await asyncio.to_thread(in_step, executor)
    stopper = asyncio.create_task(asyncio.to_thread(engine.shutdown))
    await asyncio.sleep(0)
    executor.gate.release(10**4)
    await asyncio.wait_for(asyncio.gather(stopper, *tasks), PATIENCE_S)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


# ---- state ----


def test_state_changes_are_published():
    engine, _ = toy_engine()
    states, queued = [], []
    engine.events.subscribe(EngineStateChanged, lambda event: states.append(event.state))
    engine.events.subscribe(RequestQueued, lambda event: queued.append(event.prompt_tokens))
    engine.start()
    engine.submit(ask("hello")).wait_result(PATIENCE_S)
    engine.shutdown()
    assert states == [EngineState.READY, EngineState.DRAINING, EngineState.STOPPED]
    assert queued == [5]


def test_a_reader_woken_by_a_state_change_sees_the_new_state():
    engine, _ = toy_engine()
    seen = []
    engine.on_wake(lambda: seen.append(engine.snapshot().state))
    engine.start()
    engine.wait_ready(PATIENCE_S)
    assert engine.snapshot().state is EngineState.READY
    assert engine.snapshot().model is not None
    assert EngineState.READY in seen
    engine.shutdown()
    assert seen[-1] is EngineState.STOPPED


def test_counters_include_a_request_once_its_finish_is_visible(engine):
    for count in range(1, 100):
        engine.submit(ask("hello", max_tokens=1)).wait_result(PATIENCE_S)
        snapshot = engine.snapshot()
        assert snapshot.totals.finished["length"] == count
        assert snapshot.running == snapshot.blocks.active == 0


def test_a_snapshot_during_a_step(gated):
    engine, executor = gated
    handles = [engine.submit(ask(f"number {i}")) for i in range(10)]
    in_step(executor)
    executor.gate.release(1)
    in_step(executor)
    snapshot = engine.snapshot()
    assert snapshot.state is EngineState.READY
    assert snapshot.model.name == "toy"
    assert snapshot.step == snapshot.totals.steps >= 1
    assert snapshot.running + snapshot.waiting == 10
    assert snapshot.blocks.active + snapshot.blocks.free == snapshot.blocks.total == 64
    assert engine.snapshot() is snapshot
    executor.gate.release(10**4)
    for handle in handles:
        handle.wait_result(PATIENCE_S)


def test_snapshots_during_steady_decode_are_periodic(gated):
    engine, executor = gated
    now = [1000.0]
    engine._thread.publisher._clock = lambda: now[0]

    def steps(count):
        """Run `count` steps; the snapshot while the next step waits at the gate."""
        for _ in range(count):
            executor.gate.release()
            in_step(executor)
        return engine.snapshot()

    long = engine.submit(ask("a", max_tokens=40))
    in_step(executor)
    first = steps(1)
    assert (first.step, first.running) == (1, 1)
    assert steps(5) is first
    now[0] += 2 * SNAPSHOT_PERIOD_S
    assert steps(1).step == 7
    engine._thread.publisher._snapshot_read = False  # as if that snapshot had not been read
    now[0] += 2 * SNAPSHOT_PERIOD_S
    assert steps(1).step == 7
    now[0] += UNREAD_PERIOD_S
    assert steps(1).step == 9
    short = engine.submit(ask("b", max_tokens=2))
    assert steps(2).running == 2
    ended = steps(1)
    assert (ended.running, ended.totals.finished["length"]) == (1, 1)
    executor.gate.release(10**4)
    assert len(long.wait_result(PATIENCE_S).token_ids) == 40
    assert len(short.wait_result(PATIENCE_S).token_ids) == 2
    assert engine.snapshot().totals.generation_tokens == 42


def test_rates_of_an_idle_engine_fall_to_zero():
    now = [1000.0]
    engine, _ = toy_engine(clock=lambda: now[0])
    engine.start()
    engine.submit(ask("hello", max_tokens=20)).wait_result(PATIENCE_S)
    assert engine.wait_drained(PATIENCE_S)
    engine.drain()
    engine.shutdown()
    assert engine.snapshot().rates.decode_tokens_per_second == 10.0
    now[0] += 5
    assert engine.snapshot().rates.decode_tokens_per_second == 0
    assert engine.snapshot() is engine.snapshot()
    assert engine.snapshot().rates.ttft_p50 == 0.0


def test_a_block_map_is_published_on_request(gated):
    engine, executor = gated
    first = engine.blocks(-1)
    assert first is not None
    assert (first.state == BlockState.FREE).all()
    assert engine.blocks(first.epoch) is None
    handle = engine.submit(ask("hello"))
    in_step(executor)
    executor.gate.release(1)
    in_step(executor)
    seen = engine.blocks(first.epoch)
    assert seen.owners == (handle.request_id,)
    assert (seen.state == BlockState.ACTIVE).sum() == 2
    executor.gate.release(1)
    in_step(executor)
    assert (
        engine.blocks(-1).epoch == seen.epoch + 1
    )  # requested before that step, published after it
    executor.gate.release(10**4)
    handle.wait_result(PATIENCE_S)
    engine.wait_drained(PATIENCE_S)
    engine.drain()
    engine.shutdown()
    assert (engine.blocks(-1).state != BlockState.ACTIVE).all()


def test_no_block_map_is_built_without_a_request(gated):
    engine, executor = gated
    before = engine.blocks(-1).epoch
    handle = engine.submit(ask("hello", max_tokens=20))
    for _ in range(12):
        in_step(executor)
        executor.gate.release(1)
    in_step(executor)
    assert engine.blocks(-1).epoch - before <= 1  # the one that the call above requested
    executor.gate.release(10**4)
    handle.wait_result(PATIENCE_S)


def test_idle_costs_no_cpu(engine):
    engine.submit(ask("hello")).wait_result(PATIENCE_S)
    assert engine.wait_drained(PATIENCE_S)
    steps = engine.snapshot().step
    clock = time.pthread_getcpuclockid(engine._thread._thread.ident)
    before = time.clock_gettime(clock)
    threading.Event().wait(0.3)
    assert time.clock_gettime(clock) - before < 0.02
    assert engine.snapshot().step == steps


# ---- the in-process client ----


def test_the_client_implements_its_protocol(gated):
    engine, executor = gated
    client: EngineClient = InProcessClient(engine)
    woken = threading.Semaphore(0)
    client.on_wake(woken.release)
    request = ask("hello", max_tokens=3)
    request_id = client.submit(request)
    assert client.drain(request_id) is None
    in_step(executor)
    executor.gate.release(1)
    assert woken.acquire(timeout=PATIENCE_S)
    batch = client.drain(request_id)
    assert batch.token_ids == oracle(request)[:1]
    executor.gate.release(10**4)
    ids = batch.token_ids
    while batch is None or batch.finish_reason is None:
        assert woken.acquire(timeout=PATIENCE_S)
        batch = client.drain(request_id)
        ids += batch.token_ids if batch else ()
    assert ids == oracle(request)
    assert client.drain(request_id) is None
    assert client.drain("nobody") is None
    client.cancel("nobody")
    assert client.detokenize(client.tokenize("aé")) == "aé"
    assert client.render_chat([{"role": "user", "content": "x"}]) == "user:x\n"
    assert client.tokenizer_fingerprint() == "toy"
    assert client.snapshot().state is EngineState.READY
    assert client.blocks(-1) is not None
    client.close()
    assert client.snapshot().state is EngineState.STOPPED


def test_a_mailbox_that_is_not_empty_causes_no_further_wake_up(gated):
    engine, executor = gated
    client = InProcessClient(engine)
    wakes = []
    client.on_wake(lambda: wakes.append(1))
    request_id = client.submit(ask("hello", max_tokens=100))
    in_step(executor)
    for _ in range(5):
        executor.gate.release(1)
        in_step(executor)
    assert len(wakes) == 1  # the first token; the mailbox was not drained since
    assert len(client.drain(request_id).token_ids) == 5
    executor.gate.release(1)
    in_step(executor)
    assert len(wakes) == 2


async def test_many_streams_wake_a_loop_once_a_step(gated):
    engine, executor = gated
    handles = [engine.submit(ask(f"number {i}", max_tokens=12)) for i in range(8)]
    await asyncio.to_thread(in_step, executor)
    loop, calls = asyncio.get_running_loop(), []
    original = loop.call_soon_threadsafe

    def counted(callback, *arguments, **options):
        if "_wake_waiters" in getattr(callback, "__qualname__", ""):
            calls.append(1)
        return original(callback, *arguments, **options)

    loop.call_soon_threadsafe = counted
    before = engine.snapshot().step
    readers = [asyncio.create_task(handle.result()) for handle in handles]
    streams = [asyncio.create_task(anext(handle)) for handle in handles]
    await asyncio.sleep(0)
    executor.gate.release(10**4)
    await asyncio.gather(*readers)
    await asyncio.gather(*streams, return_exceptions=True)
    assert len(calls) <= engine.snapshot().step - before + 1


def test_model_opening_is_all_that_submit_waits_for():
    opening, go = threading.Event(), threading.Event()

    def slow(config):
        opening.set()
        go.wait(PATIENCE_S)
        return toy_model()

    engine, _ = toy_engine(model_opener=slow)
    engine.start()
    assert opening.wait(PATIENCE_S)
    results = []
    submitter = threading.Thread(target=lambda: results.append(engine.submit(ask("hello"))))
    submitter.start()
    go.set()
    submitter.join(PATIENCE_S)
    assert results[0].wait_result(PATIENCE_S).finish_reason is FinishReason.LENGTH
    engine.shutdown()
