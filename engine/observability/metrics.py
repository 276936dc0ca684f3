"""`MetricsCollector`: the engine's counters and snapshot in the Prometheus text format.

Every metric that vLLM has is exported twice: with the prefix `vllm:`, which dashboards and inference
gateways read, and with the prefix `pravaha_`. All others have the prefix `pravaha_` only. Labels have
bounded cardinality: the loaded model's name, a finish reason, a block state, an engine state.
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

from engine.api.request import ENGINE_REASONS
from engine.api.snapshot import (
    EngineSnapshot,
    EngineState,
    SessionCounts,
    StateCounts,
    SwapCounts,
    WindowCounts,
)
from engine.observability.counters import CountersState
from engine.observability.histogram import HistogramState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIXES = ("vllm:", "pravaha_")
_OWN = ("pravaha_",)

_HISTOGRAMS = {
    "time_to_first_token_seconds": "Time to first token, from queueing, in seconds.",
    "inter_token_latency_seconds": "Time between two tokens of a request, in seconds.",
    "e2e_request_latency_seconds": "Time from queueing to the end of the request, in seconds.",
    "request_queue_time_seconds": "Time from queueing to the first step, in seconds.",
    "request_prefill_time_seconds": "Time from the first step to the first token, in seconds.",
    "request_decode_time_seconds": "Time from the first token to the last, in seconds.",
    "request_inference_time_seconds": "Time from the first step to the last token, in seconds.",
    "iteration_tokens_total": "Prompt tokens computed and tokens generated per step.",
    "request_prompt_tokens": "Prompt tokens per request.",
    "request_generation_tokens": "Generated tokens per request.",
    "request_params_max_tokens": "Maximum number of generated tokens of a request.",
}


class MetricsCollector(Collector):
    """A Prometheus collector with its own registry. Any thread may collect."""

    def __init__(
        self,
        *,
        model_name: Callable[[], str],
        snapshot: Callable[[], EngineSnapshot],
        counters: Callable[[], CountersState],
    ) -> None:
        """Read from the engine at every scrape.

        Args:
            model_name: returns the value of the `model_name` label: the name of the loaded model.
            snapshot: returns the engine's snapshot of its last step boundary.
            counters: returns the engine's counters.
        """
        self._get_model_name = model_name
        self._snapshot = snapshot
        self._counters = counters
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    @property
    def _model_name(self) -> str:
        return self._get_model_name()

    def render(self) -> bytes:
        """The body of `GET /metrics`, of type `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    @staticmethod
    def render_all(collectors: "Iterable[MetricsCollector]") -> bytes:
        """The body of `GET /metrics` of several engines: each metric once, with the samples of all."""
        return generate_latest(_Merged(collectors))

    def describe(self) -> Iterable[Metric]:
        """Empty, so that registration does not read the engine."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics from one consistent reading of the counters and one snapshot."""
        snapshot, state = self._snapshot(), self._counters()
        yield from self._gauges(snapshot)
        yield from self._swap(snapshot.swap)
        yield from self._states(snapshot.states)
        yield from self._windows(snapshot.windows)
        yield from self._sessions(snapshot.sessions)
        yield from self._totals(state)
        for name, text in _HISTOGRAMS.items():
            for prefix in _PREFIXES:
                yield self._histogram(prefix + name, text, state.histograms[name])
        yield self._histogram(
            "pravaha_step_seconds", "Time per step, in seconds.", state.histograms["step_seconds"]
        )

    def _gauges(self, snapshot: EngineSnapshot) -> Iterator[Metric]:
        blocks = snapshot.blocks
        yield from self._gauge("num_requests_running", "Running requests.", snapshot.running)
        yield from self._gauge("num_requests_waiting", "Waiting requests.", snapshot.waiting)
        yield from self._gauge(
            "kv_cache_usage_perc", "Fraction of KV blocks in use, 0 to 1.", blocks.usage
        )
        info = {
            "block_size": str(blocks.block_size),
            "num_gpu_blocks": str(blocks.total),  # vLLM's name, also for a pool in main memory
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
            "pravaha_engine_state", "1 for the current state.", labels=["model_name", "state"]
        )
        for each in EngineState:
            engine.add_metric([self._model_name, each.value], float(each is snapshot.state))
        yield engine
        yield from self._scheduling(snapshot)

    def _scheduling(self, snapshot: EngineSnapshot) -> Iterator[Metric]:
        chosen = InfoMetricFamily(
            "pravaha_scheduling", "Current policy and batch former.", labels=["model_name"]
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
                "Coefficients of the step-time model, in seconds per unit of the term.",
                labels=["model_name", "term"],
            )
            for term, seconds in asdict(snapshot.step_costs).items():
                costs.add_metric([self._model_name, term], seconds)
            yield costs
        if snapshot.step_error is not None:
            yield from self._gauge(
                "step_prediction_error",
                "Mean relative error of predicted step times.",
                snapshot.step_error,
                prefixes=_OWN,
            )

    def _sessions(self, sessions: SessionCounts) -> Iterator[Metric]:
        yield from self._gauge(
            "held_requests",
            "Waiting requests of agents' runs that are held.",
            sessions.held_requests,
            prefixes=_OWN,
        )
        states = GaugeMetricFamily(
            "pravaha_sessions",
            "Sessions that run, or are expected back.",
            labels=["model_name", "state"],
        )
        states.add_metric([self._model_name, "running"], sessions.running)
        states.add_metric([self._model_name, "expected"], sessions.expected)
        yield states
        lost = CounterMetricFamily(
            "pravaha_session_lost_blocks",
            "KV blocks of sessions that were computed again, by reason.",
            labels=["model_name", "reason"],
        )
        for reason, count in (
            ("away", sessions.lost_away),
            ("held", sessions.lost_held),
            ("space", sessions.lost_space),
        ):
            lost.add_metric([self._model_name, reason], count)
        yield lost

    def _swap(self, swap: SwapCounts) -> Iterator[Metric]:
        yield from self._gauge(
            "swap_capacity_blocks",
            "Capacity of the swap tier in KV blocks.",
            swap.capacity,
            prefixes=_OWN,
        )
        for name, text, label, values in (
            (
                "swapped_blocks",
                "KV blocks copied between the pool and the swap tier.",
                "direction",
                {"in": swap.swapped_in, "out": swap.swapped_out},
            ),
            (
                "swap_lost_blocks",
                "KV blocks lost from the swap tier, by reason.",
                "reason",
                {"evicted": swap.evicted, "dropped": swap.dropped, "damaged": swap.damaged},
            ),
            (
                "preempted_requests",
                "Preempted requests, by preemption method.",
                "method",
                {"swap": swap.victims_swapped, "recompute": swap.victims_recomputed},
            ),
        ):
            family = CounterMetricFamily(f"pravaha_{name}", text, labels=["model_name", label])
            for value, count in values.items():
                family.add_metric([self._model_name, value], count)
            yield family
        speeds = GaugeMetricFamily(
            "pravaha_swap_bytes_per_second",
            "Measured copy bandwidth of the swap tier.",
            labels=["model_name", "direction"],
        )
        for direction, speed in (
            ("in", swap.in_bytes_per_second),
            ("out", swap.out_bytes_per_second),
        ):
            if speed is not None:
                speeds.add_metric([self._model_name, direction], speed)
        yield speeds

    def _states(self, states: StateCounts) -> Iterator[Metric]:
        """Slots of recurrent states; nothing for a model without recurrent layers."""
        if not states.total:
            return
        slots = GaugeMetricFamily(
            "pravaha_state_slots",
            "Slots of recurrent states by what they hold.",
            labels=["model_name", "state"],
        )
        for name, count in (
            ("free", states.free),
            ("active", states.active),
            ("checkpoint", states.checkpoints),
            ("stored", states.stored),
        ):
            slots.add_metric([self._model_name, name], count)
        yield slots
        yield from self._gauge(
            "state_slot_bytes", "Bytes of a state slot.", states.slot_bytes, prefixes=_OWN
        )
        for name, text, count in (
            ("state_restores", "Requests that began with a copy of a state.", states.restored),
            ("state_evictions", "Checkpoints of states that were dropped.", states.evicted),
        ):
            family = CounterMetricFamily(f"pravaha_{name}", text, labels=["model_name"])
            family.add_metric([self._model_name], count)
            yield family

    def _windows(self, windows: WindowCounts) -> Iterator[Metric]:
        """Window blocks; nothing for a model all of whose layers keep every token."""
        if not windows.total:
            return
        blocks = GaugeMetricFamily(
            "pravaha_window_blocks",
            "Window blocks by state.",
            labels=["model_name", "state"],
        )
        kept = GaugeMetricFamily(
            "pravaha_kept_windows",
            "Windows after which a request can begin, by where they are.",
            labels=["model_name", "place"],
        )
        for name, count in (
            ("free", windows.free),
            ("active", windows.active),
            ("cached", windows.cached),
        ):
            blocks.add_metric([self._model_name, name], count)
        for name, count in (("pool", windows.windows), ("stored", windows.stored)):
            kept.add_metric([self._model_name, name], count)
        yield blocks
        yield kept
        yield from self._gauge(
            "window_block_bytes", "Bytes of a window block.", windows.block_bytes, prefixes=_OWN
        )
        evicted = CounterMetricFamily(
            "pravaha_window_evictions", "Kept windows that were dropped.", labels=["model_name"]
        )
        evicted.add_metric([self._model_name], windows.evicted)
        yield evicted

    def _totals(self, state: CountersState) -> Iterator[Metric]:
        totals = state.totals
        for name, text, value in (
            ("prompt_tokens", "Prompt tokens computed.", totals.prompt_tokens),
            ("generation_tokens", "Tokens generated.", totals.generation_tokens),
            ("num_preemptions", "Preemptions.", totals.preemptions),
            (
                "prefix_cache_queries",
                "Prompt tokens looked up in the prefix cache.",
                totals.prefix_cache_queries,
            ),
            (
                "prefix_cache_hits",
                "Prompt tokens found in the prefix cache.",
                totals.prefix_cache_hits,
            ),
            ("spec_decode_num_drafts", "Drafts verified.", totals.drafts),
            ("spec_decode_num_draft_tokens", "Draft tokens verified.", totals.draft_tokens),
            (
                "spec_decode_num_accepted_tokens",
                "Draft tokens accepted.",
                totals.accepted_draft_tokens,
            ),
            (
                "spec_decode_num_model_draft_tokens",
                "Draft tokens of a draft model verified.",
                totals.model_draft_tokens,
            ),
            (
                "spec_decode_num_accepted_model_tokens",
                "Draft tokens of a draft model accepted.",
                totals.accepted_model_draft_tokens,
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
            "First tokens of requests with a deadline, by whether they met it.",
            labels=["model_name", "met"],
        )
        deadlines.add_metric([self._model_name, "true"], totals.deadlines_met)
        deadlines.add_metric([self._model_name, "false"], totals.deadlines_missed)
        yield deadlines
        for name, text, seconds in (
            ("predicted", "Predicted time of all predicted steps.", totals.predicted_seconds),
            ("measured", "Measured time of all predicted steps.", totals.measured_seconds),
        ):
            yield from self._counter(f"step_{name}_seconds", text, seconds, prefixes=_OWN)
        for prefix in _PREFIXES:
            family = CounterMetricFamily(
                f"{prefix}request_success",
                "Finished requests by reason.",
                labels=["model_name", "finished_reason"],
            )
            for reason in ENGINE_REASONS:
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


class _Merged:
    """Several collectors as one, for `generate_latest`: the text format allows each metric once."""

    def __init__(self, collectors: Iterable[MetricsCollector]) -> None:
        self._collectors = tuple(collectors)

    def collect(self) -> Iterable[Metric]:
        """The metrics of all, those of one name together."""
        families: dict[str, Metric] = {}
        for collector in self._collectors:
            for family in collector.collect():
                known = families.setdefault(family.name, family)
                if known is not family:
                    known.samples.extend(family.samples)
        return families.values()
