"""Every family in a whole engine: prefix hits, forks, preemption and swap change no token."""

import time
from pathlib import Path

import pytest
import torch

from engine.api.request import Request, SamplingParams
from tests.parity.family_gguf import write_family_gguf
from tests.parity.real_engine import TIMEOUT_S, prose, running
from tests.parity.test_family_gguf import CASES, architecture_of
from tests.parity.tiny_models import CONTEXT, TinyModel, save_tiny_model

SAMPLING = SamplingParams(temperature=0.0, max_tokens=150, ignore_eos=True)
MORE_SAMPLING = SamplingParams(temperature=0.0, max_tokens=10, ignore_eos=True)


@pytest.fixture(params=CASES, ids=lambda tiny: tiny.name)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tiny: TinyModel = request.param
    weights = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    return write_family_gguf(tmp_path / "tiny.gguf", architecture_of(tiny), weights)


def test_hits_preemption_and_swap_change_no_token(model: Path, tmp_path: Path) -> None:
    answers = []
    # Eight one-block prompts are admitted at once and grow to six blocks each: 48 in a pool of 20.
    for pool_tokens, swap_bytes, caching in ((4000, 0, False), (640, 32 << 20, True)):
        with running(
            model,
            pool_tokens=pool_tokens,
            swap_bytes=swap_bytes,
            swap_dir=tmp_path,
            prefix_caching=caching,
            max_model_len=CONTEXT,
            kv_dtype="f16",
        ) as engine:
            text = prose(engine, 120)
            prompts = [text[8 * i : 8 * i + 30] for i in range(8)]
            first = [engine.submit(Request(prompt, SAMPLING)) for prompt in prompts]
            outputs = [handle.wait_result(TIMEOUT_S).token_ids for handle in first]
            again = [
                engine.submit(Request(prompt + output[:70], MORE_SAMPLING))
                for prompt, output in zip(prompts, outputs, strict=True)
            ]
            outputs += [handle.wait_result(TIMEOUT_S).token_ids for handle in again]
            totals = engine.snapshot().totals
            assert (totals.preemptions > 0) == caching
            # The answers' blocks are found in the pool or in the swap tier.
            asked = sum(len(handle.request.prompt_ids) for handle in [*first, *again])
            assert (totals.prompt_tokens < asked) == caching
            assert engine.snapshot().blocks.active == 0
            answers.append(outputs)
    assert answers[0] == answers[1]


def test_a_fork_continues_as_its_parent(model: Path) -> None:
    with running(model, pool_tokens=4000, max_model_len=CONTEXT, kv_dtype="f16") as engine:
        prompt = prose(engine, 70)
        parent = engine.submit(Request(prompt, SAMPLING))
        seen = 0
        while seen < 5:
            batch = parent.drain()
            seen += 0 if batch is None else len(batch.token_ids)
            time.sleep(0.001)
        (child,) = engine.fork(parent.request_id)
        forked = child.wait_result(TIMEOUT_S).token_ids
        answer = parent.wait_result(TIMEOUT_S).token_ids
        start = len(child.request.prompt_ids) - len(prompt)
        both = min(len(forked), len(answer) - start)
        assert both > 0
        assert forked[:both] == answer[start:][:both]
