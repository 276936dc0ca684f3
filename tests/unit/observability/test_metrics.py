"""What `/metrics` says, against traffic whose figures are known."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.api.scheduling import Scheduling
from engine.observability.metrics import MetricsCollector
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_pipeline import ToyPipeline

REQUESTS, PROMPT, OUTPUT = 7, 11, 9

VLLM_NAMES = [
    "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info", "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
    "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
    "vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total",
    "vllm:num_preemptions_total", "vllm:request_success_total",
    "vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:time_to_first_token_seconds_bucket", "vllm:inter_token_latency_seconds_bucket",
    "vllm:e2e_request_latency_seconds_bucket", "vllm:request_queue_time_seconds_bucket",
    "vllm:request_prefill_time_seconds_bucket", "vllm:request_decode_time_seconds_bucket",
    "vllm:request_inference_time_seconds_bucket", "vllm:iteration_tokens_total_bucket",
    "vllm:request_prompt_tokens_bucket", "vllm:request_generation_tokens_bucket",
    "vllm:request_params_max_tokens_bucket",
]  # fmt: skip


def read(text):
    samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = tuple(v for k, v in sorted(sample.labels.items()) if k != "model_name")
            samples[(sample.name, *labels)] = sample.value
    return samples


def test_scheduling_deadlines_and_step_times_are_exported():
    engine, _ = toy_engine(toy_config(scheduling=Scheduling("edf", "timed")))
    engine.start()
    request = ask(max_tokens=6)
    for one in (replace(request, deadline_ms=86_400_000.0), ask(), ask(max_tokens=3)):
        engine.submit(one).wait_result(30)
    samples = read(engine.metrics.render())
    totals = engine.snapshot().totals
    assert samples["pravaha_scheduling_info", "timed", "edf"] == 1
    assert samples["pravaha_deadlines_total", "true"] == totals.deadlines_met == 1
    assert samples["pravaha_deadlines_total", "false"] == 0
    assert samples["pravaha_step_predicted_seconds_total",] == totals.predicted_seconds > 0
    assert samples["pravaha_step_measured_seconds_total",] == totals.measured_seconds > 0
    assert samples["pravaha_step_cost_seconds", "constant"] >= 0
    assert samples["pravaha_step_prediction_error",] >= 0
    engine.shutdown()


def histograms(toy):
    return toy.counters.state().histograms


@pytest.mark.parametrize("budget", [5, 1000])
@pytest.mark.parametrize("blocks", [12, 200], ids=["preempting", "roomy"])
def test_samples_and_sums_are_exact(budget, blocks):
    """n requests of p and m tokens: n·(m−1) inter_token_latencies, iteration tokens sum to n·(p+m)."""
    toy = ToyPipeline(budget=budget, blocks=blocks)
    for start in range(REQUESTS):
        toy.submit(ask(range(start, start + PROMPT), max_tokens=OUTPUT))
    toy.run()
    totals, measured = toy.counters.totals(), histograms(toy)
    assert bool(totals.preemptions) == (blocks == 12)
    assert measured["inter_token_latency_seconds"].count == REQUESTS * (OUTPUT - 1)
    assert measured["iteration_tokens_total"].total == REQUESTS * (PROMPT + OUTPUT)
    assert measured["iteration_tokens_total"].count == totals.steps
    assert measured["time_to_first_token_seconds"].count == REQUESTS
    assert totals.prompt_tokens == REQUESTS * PROMPT
    assert totals.generation_tokens == REQUESTS * OUTPUT
    assert totals.finished == {"stop": 0, "length": REQUESTS, "abort": 0, "error": 0}
    assert measured["request_prompt_tokens"].total == REQUESTS * PROMPT
    assert measured["request_generation_tokens"].total == REQUESTS * OUTPUT


def test_intervals_add_up_to_the_requests_times():
    toy = ToyPipeline()
    toy.clock.tick = 0.25
    handles = [toy.submit(ask("hello", max_tokens=5 + i)) for i in range(3)]
    toy.run()
    timings = [handle.drain().timings for handle in handles]
    measured = histograms(toy)
    decode = sum(t.last_token - t.first_token for t in timings)
    assert measured["inter_token_latency_seconds"].total == pytest.approx(decode)
    assert measured["request_decode_time_seconds"].total == pytest.approx(decode)
    assert measured["time_to_first_token_seconds"].total == pytest.approx(
        sum(t.first_token - t.queued for t in timings)
    )
    assert measured["request_queue_time_seconds"].total == pytest.approx(
        sum(t.scheduled - t.queued for t in timings)
    )
    assert measured["request_inference_time_seconds"].total == pytest.approx(
        sum(t.last_token - t.scheduled for t in timings)
    )


def test_a_request_that_never_ran_has_no_prefill_time():
    toy = ToyPipeline()
    toy.submit(ask("hello")).abort()
    measured = histograms(toy)
    assert measured["e2e_request_latency_seconds"].count == 1
    assert measured["request_queue_time_seconds"].count == 0
    assert measured["request_prefill_time_seconds"].count == 0


def test_every_name_is_there_twice_and_agrees_with_the_snapshot():
    engine, _ = toy_engine(toy_config(max_num_seqs=4))
    engine.start()
    try:
        handles = [engine.submit(ask("hello", max_tokens=6)) for _ in range(5)]
        for handle in handles:
            handle.wait_result(30)
        engine.wait_drained(30)
        engine.drain()
    finally:
        engine.shutdown()
    samples = read(engine.metrics.render())
    names = {name for name, *_ in samples}
    for name in VLLM_NAMES:
        assert name in names
        assert name.replace("vllm:", "pravaha_") in names
    snapshot = engine.snapshot()
    for prefix in ("vllm:", "pravaha_"):
        assert samples[(f"{prefix}generation_tokens_total",)] == 30
        assert samples[(f"{prefix}generation_tokens_total",)] == snapshot.totals.generation_tokens
        assert samples[(f"{prefix}request_success_total", "length")] == 5
        assert samples[(f"{prefix}num_requests_running",)] == snapshot.running == 0
        assert samples[(f"{prefix}kv_cache_usage_perc",)] == snapshot.blocks.usage == 0
    assert samples[("pravaha_kv_blocks", "free")] == snapshot.blocks.free
    assert samples[("pravaha_steps_total",)] == snapshot.totals.steps
    assert samples[("pravaha_engine_state", "stopped")] == 1


def test_metrics_of_several_engines_are_one_valid_text():
    engines = [toy_engine(replace(toy_config(), name=name))[0] for name in ("a", "b")]
    for count, engine in enumerate(engines, 1):
        engine.start()
        engine.submit(ask(max_tokens=count)).wait_result(30)
    text = MetricsCollector.render_all(one.metrics for one in engines).decode()
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    (tokens,) = (one for one in families if one.name == "pravaha_generation_tokens")
    assert {one.labels["model_name"]: one.value for one in tokens.samples} == {"a": 1, "b": 2}
    for engine in engines:
        alone = text_string_to_metric_families(engine.metrics.render().decode())
        assert {sample.name for family in alone for sample in family.samples} <= {
            sample.name for family in families for sample in family.samples
        }
