"""The self-benchmark against the engine's own counters."""

from prometheus_client.parser import text_string_to_metric_families

from engine.benchmark.pace import MAX_REPEATS
from engine.benchmark.self_benchmark import (
    NEW_TOKENS,
    PACE_TOKENS,
    PROMPT_TOKENS,
    SINGLE_TOKENS,
    SelfBenchmark,
    random_prompts,
)
from tests.fakes.toy_engine import toy_config, toy_engine

WARM_TOKENS = 2


def counters(engine):
    families = text_string_to_metric_families(engine.metrics.render().decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_metrics_count_exactly_what_the_benchmark_asked_for():
    engine, _ = toy_engine(toy_config(blocks=512))
    engine.start()
    try:
        engine.wait_ready()
        report = SelfBenchmark(engine, repeats=2).run((1, 4))
        counted = counters(engine)
    finally:
        engine.shutdown()
    single = WARM_TOKENS + 2 * SINGLE_TOKENS
    pace = WARM_TOKENS + PACE_TOKENS
    batches = sum(n * (WARM_TOKENS + 2 * 1 + 2 * (1 + NEW_TOKENS)) for n in (1, 4))
    assert counted["pravaha_generation_tokens_total"] == pace + single + batches
    assert counted["vllm:generation_tokens_total"] == pace + single + batches
    assert list(report.columns) == ["single", "1", "4"]
    assert report.repeats == 2
    for column in report.columns.values():
        assert column.output_throughput > 0
        assert column.mean_itl_ms > 0
        assert column.roofline_share > 0


def test_prompts_repeat_for_a_seed_and_differ_between_seeds():
    prompts = random_prompts(3, seed=7, vocab_size=49152)
    assert prompts == random_prompts(3, seed=7, vocab_size=49152)
    assert prompts != random_prompts(3, seed=8, vocab_size=49152)
    assert all(len(prompt) == PROMPT_TOKENS for prompt in prompts)


def test_prompts_fit_a_small_vocabulary():
    assert max(max(prompt) for prompt in random_prompts(8, seed=1, vocab_size=64)) < 64


def test_it_says_how_long_it_takes_before_it_begins():
    told, left = [], []
    engine, _ = toy_engine(toy_config(blocks=512))
    engine.start()
    try:
        engine.wait_ready()
        benchmark = SelfBenchmark(
            engine,
            on_progress=lambda name, seconds: left.append((name, seconds)),
            on_estimate=lambda seconds, repeats: told.append((seconds, repeats, len(left))),
        )
        report = benchmark.run((1, 4))
    finally:
        engine.shutdown()
    ((seconds, repeats, before),) = told
    assert (repeats, before) == (report.repeats, 0)
    assert repeats == MAX_REPEATS  # a toy takes no minute
    assert [name for name, _ in left] == ["roofline", "single", "1", "4"]
    assert left[0][1] == seconds > left[2][1] > left[3][1] > 0
