"""`MetricsCollector`: the engine's counters and snapshot in Prometheus' text format.

Every figure is exported twice: under the name it has in vLLM, which dashboards and inference
gateways read, and under `pravaha_`. Figures that vLLM lacks exist only under `pravaha_`. Labels are
bounded: the loaded model's name, a finish reason, a block state, an engine state.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from engine.api.request import FinishReason
from engine.api.snapshot import EngineSnapshot, EngineState, SwapCounts
from engine.observability.counters import CountersState
from engine.observability.histogram import HistogramState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIXES = ("vllm:", "pravaha_")
_OWN = ("pravaha_",)

_HISTOGRAMS = {
    "time_to_first_token_seconds": "Seconds from queueing to the first token.",
    "inter_token_latency_seconds": "Seconds between two tokens of a request.",
    "e2e_request_latency_seconds": "Seconds from queueing to the end.",
    "request_queue_time_seconds": "Seconds from queueing to the first step.",
    "request_prefill_time_seconds": "Seconds from the first step to the first token.",
    "request_decode_time_seconds": "Seconds from the first token to the last.",
    "request_inference_time_seconds": "Seconds from the first step to the last token.",
    "iteration_tokens_total": "Prompt tokens computed and tokens generated in a step.",
    "request_prompt_tokens": "Prompt tokens of a request.",
    "request_generation_tokens": "Tokens a request generated.",
    "request_params_max_tokens": "Tokens a request was allowed to generate.",
}


class MetricsCollector(Collector):
    """A Prometheus collector with a registry of its own. Any thread may collect."""

    def __init__(
        self,
        *,
        model_name: str,
        snapshot: Callable[[], EngineSnapshot],
        counters: Callable[[], CountersState],
    ) -> None:
        """Read from the engine at every scrape.

        Args:
            model_name: value of the `model_name` label.
            snapshot: the engine at its last step boundary.
            counters: the engine's counters.
        """
        self._model_name = model_name
        self._snapshot = snapshot
        self._counters = counters
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def render(self) -> bytes:
        """The exposition that `GET /metrics` answers, of type `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are fixed, and the engine need not be asked at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """One consistent reading of counters, and the snapshot beside it."""
        snapshot, state = self._snapshot(), self._counters()
        yield from self._gauges(snapshot)
        yield from self._swap(snapshot.swap)
        yield from self._totals(state)
        for name, text in _HISTOGRAMS.items():
            for prefix in _PREFIXES:
                yield self._histogram(prefix + name, text, state.histograms[name])
        yield self._histogram(
            "pravaha_step_seconds", "Seconds of a step.", state.histograms["step_seconds"]
        )

    def _gauges(self, snapshot: EngineSnapshot) -> Iterator[Metric]:
        blocks = snapshot.blocks
        yield from self._gauge("num_requests_running", "Requests in a row.", snapshot.running)
        yield from self._gauge("num_requests_waiting", "Requests in the queue.", snapshot.waiting)
        yield from self._gauge(
            "kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.", blocks.usage
        )
        info = {
            "block_size": str(blocks.block_size),
            "num_gpu_blocks": str(blocks.total),  # vLLM's word; ours are in main memory
            "block_bytes": str(blocks.block_bytes),
            "cache_dtype": snapshot.model.kv_dtype if snapshot.model else "",
        }
        for prefix in _PREFIXES:
            family = InfoMetricFamily(
                f"{prefix}cache_config",
                "Geometry of the KV pool.",
                labels=["model_name"],
            )
            family.add_metric([self._model_name], info)
            yield family
        states = GaugeMetricFamily(
            "pravaha_kv_blocks", "KV blocks by state.", labels=["model_name", "state"]
        )
        for name, count in (
            ("free", blocks.free),
            ("active", blocks.active),
            ("cached", blocks.cached),
            ("swapped", blocks.swapped),
        ):
            states.add_metric([self._model_name, name], count)
        yield states
        engine = GaugeMetricFamily(
            "pravaha_engine_state", "1 for the engine's state.", labels=["model_name", "state"]
        )
        for each in EngineState:
            engine.add_metric([self._model_name, each.value], float(each is snapshot.state))
        yield engine
        yield from self._scheduling(snapshot)

    def _scheduling(self, snapshot: EngineSnapshot) -> Iterator[Metric]:
        chosen = InfoMetricFamily(
            "pravaha_scheduling", "The policy and batch former in force.", labels=["model_name"]
        )
        scheduling = snapshot.scheduling
        facts: dict[str, str] = {
            "policy": scheduling.policy,
            "batch_former": scheduling.batch_former,
        }
        chosen.add_metric([self._model_name], facts)
        yield chosen
        if snapshot.step_costs is not None:
            costs = GaugeMetricFamily(
                "pravaha_step_cost_seconds",
                "The step-time model: seconds for each of a term.",
                labels=["model_name", "term"],
            )
            for term, seconds in asdict(snapshot.step_costs).items():
                costs.add_metric([self._model_name, term], seconds)
            yield costs
        if snapshot.step_error is not None:
            yield from self._gauge(
                "step_prediction_error",
                "Usual relative error of predicted step times.",
                snapshot.step_error,
                prefixes=_OWN,
            )

    def _swap(self, swap: SwapCounts) -> Iterator[Metric]:
        yield from self._gauge(
            "swap_capacity_blocks",
            "KV blocks that fit into the swap tier.",
            swap.capacity,
            prefixes=_OWN,
        )
        for name, text, label, values in (
            (
                "swapped_blocks",
                "KV blocks copied between pool and swap tier.",
                "direction",
                {"in": swap.swapped_in, "out": swap.swapped_out},
            ),
            (
                "swap_lost_blocks",
                "KV blocks that the swap tier did not keep.",
                "reason",
                {"evicted": swap.evicted, "dropped": swap.dropped, "damaged": swap.damaged},
            ),
            (
                "preempted_by",
                "Preempted requests by what became of their KV.",
                "means",
                {"swap": swap.victims_swapped, "recompute": swap.victims_recomputed},
            ),
        ):
            family = CounterMetricFamily(f"pravaha_{name}", text, labels=["model_name", label])
            for value, count in values.items():
                family.add_metric([self._model_name, value], count)
            yield family
        speeds = GaugeMetricFamily(
            "pravaha_swap_bytes_per_second",
            "Measured copying speed of the swap tier.",
            labels=["model_name", "direction"],
        )
        for direction, speed in (
            ("in", swap.in_bytes_per_second),
            ("out", swap.out_bytes_per_second),
        ):
            if speed is not None:
                speeds.add_metric([self._model_name, direction], speed)
        yield speeds

    def _totals(self, state: CountersState) -> Iterator[Metric]:
        totals = state.totals
        for name, text, value in (
            ("prompt_tokens", "Prompt tokens computed.", totals.prompt_tokens),
            ("generation_tokens", "Tokens generated.", totals.generation_tokens),
            ("num_preemptions", "Requests that lost their row.", totals.preemptions),
            ("prefix_cache_queries", "Prompt tokens looked up.", totals.prefix_cache_queries),
            ("prefix_cache_hits", "Prompt tokens found cached.", totals.prefix_cache_hits),
            ("spec_decode_num_drafts", "Drafts that steps checked.", totals.drafts),
            ("spec_decode_num_draft_tokens", "Tokens of these drafts.", totals.draft_tokens),
            (
                "spec_decode_num_accepted_tokens",
                "Draft tokens that were right.",
                totals.accepted_draft_tokens,
            ),
            (
                "external_prefix_cache_queries",
                "Prompt tokens looked up in the swap tier.",
                totals.external_prefix_cache_queries,
            ),
            (
                "external_prefix_cache_hits",
                "Prompt tokens found in the swap tier.",
                totals.external_prefix_cache_hits,
            ),
        ):
            yield from self._counter(name, text, value)
        yield from self._counter("steps", "Steps executed.", totals.steps, prefixes=_OWN)
        yield from self._counter(
            "kv_block_copies", "KV blocks copied.", totals.copied_blocks, prefixes=_OWN
        )
        deadlines = CounterMetricFamily(
            "pravaha_deadlines",
            "First tokens of requests that named a deadline.",
            labels=["model_name", "met"],
        )
        deadlines.add_metric([self._model_name, "true"], totals.deadlines_met)
        deadlines.add_metric([self._model_name, "false"], totals.deadlines_missed)
        yield deadlines
        for name, text, seconds in (
            ("predicted", "Predicted time of the steps predicted.", totals.predicted_seconds),
            ("measured", "Measured time of the steps predicted.", totals.measured_seconds),
        ):
            yield from self._counter(f"step_{name}_seconds", text, seconds, prefixes=_OWN)
        for prefix in _PREFIXES:
            family = CounterMetricFamily(
                f"{prefix}request_success",
                "Finished requests by reason.",
                labels=["model_name", "finished_reason"],
            )
            for reason in FinishReason:
                count = totals.finished.get(reason.value, 0)
                family.add_metric([self._model_name, reason.value], count)
            yield family

    def _gauge(
        self, name: str, text: str, value: float, *, prefixes: tuple[str, ...] = _PREFIXES
    ) -> Iterator[Metric]:
        for prefix in prefixes:
            family = GaugeMetricFamily(prefix + name, text, labels=["model_name"])
            family.add_metric([self._model_name], value)
            yield family

    def _counter(
        self, name: str, text: str, value: float, *, prefixes: tuple[str, ...] = _PREFIXES
    ) -> Iterator[Metric]:
        for prefix in prefixes:
            family = CounterMetricFamily(prefix + name, text, labels=["model_name"])
            family.add_metric([self._model_name], value)
            yield family

    def _histogram(self, name: str, text: str, state: HistogramState) -> Metric:
        bounds = [*(f"{bound:g}" for bound in state.bounds), "+Inf"]
        cumulative = state.counts.cumsum().tolist()
        family = HistogramMetricFamily(name, text, labels=["model_name"])
        family.add_metric(
            [self._model_name],
            buckets=[
                (bound, float(count)) for bound, count in zip(bounds, cumulative, strict=True)
            ],
            sum_value=state.total,
        )
        return family
