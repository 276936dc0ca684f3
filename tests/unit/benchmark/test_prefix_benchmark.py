"""The prefix benchmark on the toy executor: its figures are the engine's counters."""

from contextlib import contextmanager

import pytest

from engine.benchmark.prefix_benchmark import (
    NEW_TOKENS,
    TAIL_TOKENS,
    PrefixBenchmark,
    agent_prompts,
)
from tests.fakes.toy_engine import toy_config, toy_engine

AGENTS, PREFIX, BLOCK = 5, 50, 4


@contextmanager
def start(prefix_caching):
    config = toy_config(blocks=512, block_size=BLOCK, prefix_caching=prefix_caching)
    engine, _ = toy_engine(config)
    engine.start()
    try:
        yield engine
    finally:
        engine.shutdown()


def test_the_prefix_is_computed_once_and_answers_are_equal():
    said = []
    report = PrefixBenchmark(
        start, agents=AGENTS, prefix_tokens=PREFIX, on_progress=said.append
    ).run()
    assert said == ["a shared prefix", "private prefixes"]
    whole = AGENTS * (PREFIX + TAIL_TOKENS)
    assert (report.private.prompt_tokens, report.private.queries) == (whole, 0)
    assert report.shared.queries == whole
    assert report.shared.prompt_tokens == whole - report.shared.hits
    # A row may share what another computed to the token, and computes the rest itself.
    assert report.shared.prompt_tokens <= PREFIX + AGENTS * (TAIL_TOKENS + BLOCK)
    assert report.shared.hit_rate == pytest.approx(report.shared.hits / whole)
    assert report.shared.peak_blocks <= report.least_blocks
    assert report.equal_answers == AGENTS
    assert report.to_dict()["seconds_saved"] == report.seconds_saved
    rows = -(-(PREFIX + TAIL_TOKENS + NEW_TOKENS) // BLOCK)
    assert report.least_blocks == PREFIX // BLOCK + AGENTS * (rows - PREFIX // BLOCK)
    # The first request may end before the last one begins, so the peak of private prefixes may be lower.
    assert PREFIX // BLOCK < report.private.peak_blocks <= AGENTS * rows


def test_prompts_share_exactly_the_prefix():
    prompts = agent_prompts(4, 10, 300)
    assert prompts == agent_prompts(4, 10, 300)
    assert len({prompt[:10] for prompt in prompts}) == 1
    assert len({prompt[10:] for prompt in prompts}) == 4
