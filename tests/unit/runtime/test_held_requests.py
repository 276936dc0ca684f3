"""The engine's thread while all requests are held: it sleeps, and lets the first one in when it is time."""

from dataclasses import replace

import pytest

from tests.fakes.toy_engine import ask, toy_config, toy_engine

PATIENCE_S = 60


@pytest.fixture
def engine():
    config = toy_config(blocks=24, block_size=4)
    engine, executor = toy_engine(config)
    engine.start()
    engine.wait_ready()
    sessions = engine._thread.pipeline.blocks.sessions
    sessions.growth, sessions.turns = 8.0, 3.0
    yield engine, executor
    engine.shutdown()


def prompt(first, length):
    return [(first + index) % 90 for index in range(length)]


def submit(engine, name, tokens):
    request = ask(tokens, max_tokens=2)
    return engine.submit(replace(request, session=name, may_be_held=True))


def computing_takes(engine, seconds):
    """Let computing any block again take so long, by the prediction."""
    work = engine._thread.pipeline.scheduler.work
    work.prefill_seconds = lambda tokens, cached: seconds


def test_a_held_request_is_let_in_without_a_command(engine):
    engine, _ = engine
    submit(engine, "a", prompt(0, 40)).wait_result(PATIENCE_S)
    computing_takes(engine, 0.2)
    output = submit(engine, "b", prompt(45, 60)).wait_result(PATIENCE_S)
    assert len(output.token_ids) == 2
    assert output.timings.scheduled - output.timings.queued >= 0.2


def test_a_held_request_can_be_aborted_while_the_engine_sleeps(engine):
    engine, executor = engine
    submit(engine, "a", prompt(0, 40)).wait_result(PATIENCE_S)
    computing_takes(engine, 1e6)
    steps = len(executor.steps)
    held = submit(engine, "b", prompt(45, 60))
    held.abort()
    assert held.wait_result(PATIENCE_S).finish_reason == "abort"
    assert len(executor.steps) == steps


def test_a_run_that_comes_back_is_served_before_one_that_is_held(engine):
    engine, _ = engine
    first = submit(engine, "a", prompt(0, 40)).wait_result(PATIENCE_S)
    computing_takes(engine, 1e6)
    held = submit(engine, "b", prompt(45, 60))
    again = submit(engine, "a", [*prompt(0, 40), *first.token_ids, 7]).wait_result(PATIENCE_S)
    assert again.cached_tokens >= 40
    assert engine.snapshot().waiting == 1
    held.abort()


def test_a_shutdown_does_not_wait_for_held_requests(engine):
    engine, _ = engine
    submit(engine, "a", prompt(0, 40)).wait_result(PATIENCE_S)
    computing_takes(engine, 1e6)
    held = submit(engine, "b", prompt(45, 60))
    engine.shutdown()
    assert held.wait_result(PATIENCE_S).finish_reason == "abort"
