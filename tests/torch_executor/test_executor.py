"""Properties of the torch executor for every model: invariance, failures, limits, data types."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.api.errors import ExecutorError, ModelError
from engine.executors.open_model import open_model
from engine.executors.torch.self_check import check_attention
from tests.fakes.tiny_transformers import VOCAB, greedy, save_tiny, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.loaded import DEVICE, load_torch, stepper, torch_config

LOGPROBS = {"num_logprobs": 3}


def prompt(length, seed=0):
    return np.random.default_rng(1000 * seed + length).integers(3, VOCAB, length).tolist()


@pytest.fixture(scope="module")
def mistral(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("mistral"), tiny_hf_model("mistral"))


@pytest.fixture
def executor(mistral):
    loaded = load_torch(mistral)
    yield loaded
    loaded.close()


def runs(count, **fields):
    return [
        Run(prompt(3 + 5 * index % 37, index), 10, sampling=LOGPROBS | fields)
        for index in range(count)
    ]


def same(one, other):
    assert one.tokens == other.tokens
    np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


@pytest.mark.parametrize("rows", [4, 5, 16, 17])
def test_alone_equals_among_others(executor, rows):
    together = runs(rows)
    stepper(executor).run(together)
    for index, alone in enumerate(runs(rows)):
        stepper(executor).run([alone])
        same(alone, together[index])


@pytest.mark.parametrize("chunk", [1, 7, 32, 64])
def test_chunking_changes_nothing(executor, chunk):
    whole, chunked = (
        Run(prompt(64), 8, sampling=LOGPROBS, chunks=chunks) for chunks in (None, [chunk])
    )
    stepper(executor).run([whole])
    stepper(executor).run([chunked])
    same(whole, chunked)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 119])
def test_prompts_around_a_block_and_up_to_the_full_context(executor, length):
    run = Run(prompt(length), 8)
    stepper(executor).run([run])
    assert run.tokens == greedy(tiny_hf_model("mistral"), prompt(length), 8)


def test_a_long_decode_among_twelve_rows(executor):
    """The shape of a split-KV bug (vLLM #48076): long contexts at batch size 12."""
    together = [Run(prompt(5, index), 100) for index in range(12)]
    stepper(executor).run(together)
    model = tiny_hf_model("mistral")
    for index in (0, 5, 11):
        assert together[index].tokens == greedy(model, prompt(5, index), 100)


def test_a_seeded_sample_is_reproducible_in_any_batch_and_chunking(executor):
    fields = {"temperature": 1.0, "top_p": 0.95, "seed": 2**63 + 11}
    alone = Run(prompt(20), 12, sampling=fields)
    stepper(executor).run([alone])
    again = Run(prompt(20), 12, sampling=fields, chunks=[3], arrival=2)
    stepper(executor).run([*runs(5, temperature=1.0, seed=4), again])
    assert again.tokens == alone.tokens


def test_nan_logits_fail_one_request(mistral, tmp_path):
    tensors = load_file(mistral / "model.safetensors")
    tensors["model.embed_tokens.weight"][200] = float("nan")
    broken = tmp_path / "nan"
    broken.mkdir()
    for file in mistral.iterdir():
        if file.suffix == ".json":
            (broken / file.name).write_bytes(file.read_bytes())
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    # Token 200 is in one prompt and, at worst by chance, in an output.
    executor = load_torch(broken)
    healthy, failing = Run([5, 6, 7], 4), Run([5, 200, 7], 4)
    stepper(executor).run([healthy, failing])
    assert failing.failed
    assert not healthy.failed
    assert healthy.tokens == greedy(tiny_hf_model("mistral"), [5, 6, 7], 4)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bf16", 0.25), ("f16", 0.05)])
def test_half_precision_is_close_to_float32(mistral, dtype, tolerance):
    exact, half = load_torch(mistral), load_torch(mistral, dtype=dtype)
    forced = prompt(20, 9)
    results = []
    for executor in (exact, half):
        run = Run(prompt(30), 20, sampling={"num_logprobs": 1}, forced=forced)
        stepper(executor).run([run])
        results.append(run)
    likeliest = [[token for ((token, _),) in run.top] for run in results]
    assert np.mean(np.equal(*likeliest)) > 0.7
    differences = np.abs(np.subtract(results[0].logprobs, results[1].logprobs))
    assert differences.mean() < tolerance
    assert half.info.kv_dtype == dtype
    assert half.info.weight_format == dtype.upper()
    for executor, settings in ((exact, {}), (half, {"dtype": dtype})):
        config = torch_config(mistral, **settings)
        model = open_model(mistral, config)
        plan = model.plan_memory(config, kv_dtype=model.spec.compute_dtype, max_model_len=128)
        assert plan.block_bytes == executor.block_bytes
        assert 0 <= executor.info.weight_bytes - plan.weight_bytes < 1000  # buffers, such as RoPE's
    assert exact.info.weight_bytes - half.info.weight_bytes == 2 * exact.info.parameters


def test_a_half_precision_kv_cache_is_used(mistral):
    executor = load_torch(mistral, kv_dtype="f16")
    assert executor.info.kv_dtype == "f16"
    run = Run(prompt(30), 8)
    stepper(executor).run([run])
    assert len(run.tokens) == 8


def test_a_plan_out_of_bounds_is_an_error_and_the_executor_stays_usable(executor):
    with pytest.raises(ExecutorError, match="outside the vocabulary"):
        stepper(executor).run([Run([VOCAB], 1)])
    with pytest.raises(ExecutorError, match="outside the vocabulary"):
        stepper(executor).run([Run([-1], 1)])
    good = Run([3], 2)
    stepper(executor).run([good])
    assert len(good.tokens) == 2


def test_a_closed_executor_raises(mistral):
    executor = load_torch(mistral)
    executor.close()
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        stepper(executor).run([Run([3], 1)])


def test_dummy_weights_are_the_same_every_time(mistral, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((mistral / name).read_bytes())
    answers = []
    for _ in range(2):
        executor = load_torch(bare, dummy_weights=True)
        run = Run(prompt(12), 12)
        stepper(executor).run([run])
        answers.append(run.tokens)
        assert executor.info.weight_format == "dummy F32"
    assert answers[0] == answers[1]
    torch.manual_seed(5)
    before = torch.initial_seed()
    load_torch(bare, dummy_weights=True)
    assert torch.initial_seed() == before


def test_missing_weights_are_refused(mistral, tmp_path):
    for file in mistral.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"missing weight .*layers.1.mlp.up_proj"):
        load_torch(tmp_path)


def test_attention_unlike_that_of_transformers_is_detected(mistral):
    """The check at load time rejects a backend that computes something else."""

    class Deaf:
        def __init__(self, pool, layout, device):
            pass

        def attend(self, layer, query, key, value, traits):
            return query.new_zeros(query.shape[0], query.shape[1], value.shape[2])

    from engine.executors.open_model import open_model
    from engine.executors.torch.backends import Backend
    from tests.torch_executor.loaded import torch_config

    executor = load_torch(mistral)
    spec = open_model(mistral, torch_config(mistral)).spec
    with pytest.raises(ModelError, match="is not supported: its logits"):
        check_attention(
            executor._model, spec, backend=Backend("deaf", Deaf), device=torch.device(DEVICE)
        )
