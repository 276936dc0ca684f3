"""A draft model in the engine, on the demo model: the same outputs in fewer steps, whatever it proposes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.api.config import EngineConfig
from engine.api.grammar import Grammar
from engine.api.request import Request, RequestOutput, SamplingParams
from engine.api.step_costs import StepCosts
from engine.executors.base import Executor, StepPlan, StepResult
from engine.executors.draft_model import SLOTS
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.loading import load_executor
from engine.scheduler.step_time import StepTimeModel
from tests.parity.real_engine import TIMEOUT_S

PROMPTS = (
    "Write a haiku about the sea.",
    "What does a compiler do?",
    "Explain why the sky is blue. " * 30,
)


class Forgetful:
    """An executor of a draft model, of whose samples every fourth is another token."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._samples = 0

    def execute(self, plan: StepPlan) -> StepResult:
        result = self._inner.execute(plan)
        self._samples += 1
        if self._samples % 4 == 0:
            result.sampled[:] = np.where(
                result.sampled < 0, result.sampled, (result.sampled + 1) % 40_000
            )
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _factory(wrap: bool) -> Callable[..., Executor]:
    def load(model: Any, config: EngineConfig, **options: Any) -> Executor:
        executor = load_executor(model, config, **options)
        drafts = config.max_num_seqs == SLOTS
        return Forgetful(executor) if wrap and drafts else executor  # type: ignore[return-value]

    return load


@pytest.fixture(scope="module")
def engines(demo_model: Path) -> Iterator[dict[str, AsyncPravahaEngine]]:
    """Without drafts, with an equal draft model and with a weaker one; steps seem to be slow."""
    with pytest.MonkeyPatch.context() as patch:
        costs = StepCosts(constant=100.0, prefill_token=1e-3, decode_row=1e-2, kv_token=0.0)
        patch.setattr(StepTimeModel, "costs", property(lambda self: costs))
        started = {}
        for kind in ("plain", "equal", "weak"):
            config = EngineConfig(
                demo_model,
                "demo",
                kv_cache_bytes=64 << 20,
                max_model_len=1024,
                speculation=kind != "plain",
                draft_model=None if kind == "plain" else demo_model,
            )
            engine = AsyncPravahaEngine(config, executor_factory=_factory(kind == "weak"))
            engine.start()
            engine.wait_ready(TIMEOUT_S)
            started[kind] = engine
        yield started
        for engine in started.values():
            engine.shutdown()


def _ask(engine: AsyncPravahaEngine, text: str, **params: object) -> Request:
    ids = engine.tokenizer.encode_chat([{"role": "user", "content": text}])
    return Request(tuple(ids), SamplingParams(**{"temperature": 0.0, "max_tokens": 24} | params))


def _outcomes(outputs: Sequence[RequestOutput]) -> list[tuple[object, ...]]:
    return [
        (one.token_ids, one.text, one.finish_reason, one.logprobs, one.top_logprobs)
        for one in outputs
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"logprobs": 2},
        {"temperature": 1.0, "seed": 3, "top_p": 0.9},
        {"repetition_penalty": 1.05, "temperature": 0.2, "seed": 4, "logit_bias": ((300, 2.0),)},
        {"dry_multiplier": 0.8, "stop": ("the",)},
    ],
    ids=["greedy", "seeded", "penalised", "stop"],
)
def test_answers_are_equal_and_take_fewer_steps(
    engines: dict[str, AsyncPravahaEngine], params: dict[str, object]
) -> None:
    """One after the other, two at once, and again from the prefix cache."""
    outcomes, steps, accepted = {}, {}, {}
    for kind, engine in engines.items():
        before = engine.snapshot().totals
        outputs = [
            engine.submit(_ask(engine, text, **params)).wait_result(TIMEOUT_S) for text in PROMPTS
        ]
        handles = [engine.submit(_ask(engine, text, **params)) for text in PROMPTS[1:]]
        outputs += [handle.wait_result(TIMEOUT_S) for handle in handles]
        after = engine.snapshot().totals
        outcomes[kind] = _outcomes(outputs)
        steps[kind] = after.steps - before.steps
        accepted[kind] = after.accepted_model_draft_tokens - before.accepted_model_draft_tokens
    assert outcomes["weak"] == outcomes["equal"] == outcomes["plain"]
    assert accepted["plain"] == 0
    assert accepted["weak"] > 0
    assert steps["equal"] < steps["weak"] < steps["plain"]


def test_an_equal_model_agrees_at_any_temperature(engines: dict[str, AsyncPravahaEngine]) -> None:
    engine = engines["equal"]
    before = engine.snapshot().totals
    request = _ask(engine, PROMPTS[0], temperature=1.5, seed=8, ignore_eos=True, max_tokens=40)
    engine.submit(request).wait_result(TIMEOUT_S)
    after = engine.snapshot().totals
    drafted = after.model_draft_tokens - before.model_draft_tokens
    assert drafted >= 20
    assert after.accepted_model_draft_tokens - before.accepted_model_draft_tokens == drafted


def test_forks_continue_as_without_a_draft_model(engines: dict[str, AsyncPravahaEngine]) -> None:
    outcomes = {}
    for kind, engine in engines.items():
        request = _ask(engine, PROMPTS[1], temperature=0.8, seed=6, ignore_eos=True)
        parent = engine.submit(request)
        children = engine.fork(parent.request_id, at=len(request.prompt_ids), n=2)
        handles = [parent, *children]
        outcomes[kind] = _outcomes([handle.wait_result(TIMEOUT_S) for handle in handles])
    assert outcomes["weak"] == outcomes["equal"] == outcomes["plain"]


def test_answers_under_a_grammar_have_no_drafts(engines: dict[str, AsyncPravahaEngine]) -> None:
    engine = engines["equal"]
    grammar = Grammar.regex("[a-z ]{20,40}")
    engine.build_grammar(grammar).result(60)
    before = engine.snapshot().totals.draft_tokens
    output = engine.submit(_ask(engine, PROMPTS[0], grammar=grammar)).wait_result(TIMEOUT_S)
    assert 20 <= len(output.text) <= 40
    assert engine.snapshot().totals.draft_tokens == before
