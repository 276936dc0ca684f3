"""The demo model against transformers in fp32 on the file's own weights, dequantised."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedModel

from app.runtime.perplexity import score_text, windows
from engine.api.config import EngineConfig
from engine.clients.in_process import InProcessClient
from engine.executors.open_model import OpenModel, open_model
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.accuracy import PROSE, QUESTIONS, ProseScore, departures, margins, score_prose
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, model_from_gguf
from tests.parity.stepper import Run, Stepper


@pytest.fixture(scope="module")
def opened(demo_model: Path) -> OpenModel:
    return open_model(demo_model)


@pytest.fixture(scope="module")
def reference(demo_model: Path) -> PreTrainedModel:
    return model_from_gguf(demo_model)


@pytest.fixture(scope="module")
def quantized(demo_model: Path) -> Iterator[Stepper]:
    """The default configuration: the file's 4-bit weights and an int8 KV cache."""
    stepper = load_stepper(
        demo_model, kv_dtype="auto", rows=len(QUESTIONS), max_model_len=1088, num_blocks=320
    )
    assert stepper.executor.info.kv_dtype == "int8"
    yield stepper
    stepper.executor.close()


@pytest.fixture(scope="module")
def prompts(opened: OpenModel) -> list[list[int]]:
    def prompt(question: str) -> list[int]:
        text = opened.tokenizer.render_chat([{"role": "user", "content": question}])
        return opened.tokenizer.encode(text, special=True)

    return [prompt(question) for question in QUESTIONS]


@pytest.fixture(scope="module")
def prose_scores(
    opened: OpenModel, reference: PreTrainedModel, demo_model: Path, quantized: Stepper
) -> dict[str, ProseScore]:
    """The score of each type of KV cache; the reference runs once for both."""
    f16 = load_stepper(
        demo_model, kv_dtype="f16", rows=len(QUESTIONS), max_model_len=512, num_blocks=320
    )
    ids = opened.tokenizer.encode(PROSE.read_text())
    f16_score, int8_score = score_prose([f16, quantized], reference, ids)
    f16.executor.close()
    return {"f16": f16_score, "int8": int8_score}


@pytest.mark.parametrize(("kv_dtype", "most"), [("f16", 0.002), ("int8", 0.005)])
def test_quantised_prose_diverges_little(
    prose_scores: dict[str, ProseScore], kv_dtype: str, most: float
) -> None:
    """Perplexity within 0.5 % and mean KL divergence far below 0.01 on prose.

    The executor reports logprobs of the 20 likeliest tokens; all others count as one here. That can
    only lower the divergence, so the bound is half of what is allowed.
    """
    score = prose_scores[kv_dtype]
    print(score)
    assert score.tokens > 2500
    assert score.mean_kl <= most
    assert score.perplexity_ratio <= 1.005


def test_a_text_scored_in_windows_is_the_sum_of_its_windows(
    demo_model: Path, quantized: Stepper
) -> None:
    """The engine's score of a text equals that of the executor, given each window as a prompt."""
    text, context, stride = PROSE.read_text()[:2000], 128, 64
    config = EngineConfig(demo_model, "demo", kv_cache_bytes=64 << 20)
    engine = AsyncPravahaEngine(config)
    client = InProcessClient(engine)
    engine.start()
    try:
        engine.wait_ready(60)
        ids = client.tokenize(text)
        score = score_text(client, text, context=context, stride=stride)
    finally:
        client.close()
    total = 0.0
    for window in windows(len(ids), context, stride):
        run = Run(ids[window.start : window.stop], 1, score=0)
        quantized.run([run])
        total -= sum(run.prompt_logprobs[window.first - window.start - 1 :])
    assert score.tokens == len(ids) - 1
    assert score.windows > 3
    assert score.total == pytest.approx(total, rel=1e-6)


def test_quantised_answers_depart_only_at_near_ties(
    reference: PreTrainedModel, quantized: Stepper, prompts: list[list[int]]
) -> None:
    """Where an answer of 48 tokens first departs, fp32's two best are at most 0.4 logits apart."""
    margins = departures(quantized, reference, prompts)
    print(f"{len(prompts) - len(margins)} of {len(prompts)} equal; margins {np.round(margins, 3)}")
    assert max(margins, default=0.0) <= 0.4


def test_a_continuation_of_1k_tokens_of_prose_departs_only_at_near_ties(
    opened: OpenModel, reference: PreTrainedModel, quantized: Stepper
) -> None:
    """Every token is fp32's best or nearly so, given the tokens before it."""
    ids = opened.tokenizer.encode(PROSE.read_text())[:1010]
    run = Run(ids, 32)
    quantized.run([run])
    found = margins(answer_logits(reference, ids, run.tokens), run.tokens)
    print(f"{np.mean(found > 0):.1%} of tokens are not fp32's, largest margin {found.max():.3f}")
    assert found.max() <= 0.4


def test_unquantised_answers_are_the_same_tokens(
    reference: PreTrainedModel,
    prompts: list[list[int]],
    tmp_path: Path,
) -> None:
    reference.save_pretrained(tmp_path)
    exact = load_stepper(tmp_path)
    runs = [Run(prompt, 64) for prompt in prompts[:5]]
    exact.run(runs)
    exact.executor.close()
    for run in runs:
        expected = answer_logits(reference, run.prompt, run.tokens).argmax(-1).tolist()
        assert run.tokens == expected
