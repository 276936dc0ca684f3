"""`/metrics` parses and agrees with the responses."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live

SENT = [("one", 3), ("three", 5), ("seven!!", 9)]


@pytest.fixture(scope="module")
def traffic():
    """A fresh server after known traffic, and its metrics by (name, labels)."""
    with (
        byte_engine() as engine,
        live(engine) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        for prompt, tokens in SENT:
            body = {"model": "toy", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
            assert client.post("/v1/completions", json=body).status_code == 200
        assert client.post("/v1/completions", json={"model": "toy"}).status_code == 400
        assert client.get("/secret/<script>").status_code == 404
        wait_until(lambda: is_quiet(engine))
        text = client.get("/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(traffic, name, **labels):
    values = [
        value
        for (sample, found), value in traffic.items()
        if sample == name and labels.items() <= dict(found).items()
    ]
    assert values, name
    return sum(values)


@pytest.mark.parametrize("dialect", ["vllm:", "pravaha_"])
def test_token_and_request_counts_agree_with_the_traffic(traffic, dialect):
    prompt = sum(len(text) for text, _ in SENT)
    generated = sum(tokens for _, tokens in SENT)
    assert total(traffic, f"{dialect}prompt_tokens_total") == prompt
    assert total(traffic, f"{dialect}generation_tokens_total") == generated
    lengths = total(traffic, f"{dialect}request_success_total", finished_reason="length")
    assert lengths == len(SENT)
    inter_token_latencies = sum(tokens - 1 for _, tokens in SENT)
    assert total(traffic, f"{dialect}inter_token_latency_seconds_count") == inter_token_latencies
    assert total(traffic, f"{dialect}time_to_first_token_seconds_count") == len(SENT)
    assert total(traffic, f"{dialect}iteration_tokens_total_sum") == prompt + generated
    for gauge in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        assert total(traffic, dialect + gauge) == 0


def test_responses_are_counted_by_route_pattern_only(traffic):
    responses = "pravaha_http_responses_total"
    route = "/v1/completions"
    assert total(traffic, responses, route=route, status="200") == len(SENT)
    assert total(traffic, responses, route=route, status="400") == 1
    assert total(traffic, responses, route="none", status="404") == 1
    assert not any("script" in str(labels) for _, labels in traffic)
    assert total(traffic, "pravaha_http_requests_open") == 1  # the request for the metrics itself
