"""The work of a step, against counts made from the shapes of a tiny model's tensors."""

from contextlib import contextmanager
from dataclasses import replace

import gguf
import numpy as np
import pytest

from engine.api.config import EngineConfig
from engine.benchmark.step_work import Ceilings, ModelWork, StepWork, _kv_reads
from engine.models.spec import Attention, LayerSpec
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.tiny_gguf import (
    HEAD_DIM,
    KV_HEADS,
    LAYERS,
    model_fields,
    model_shapes,
    write_gguf,
)
from tests.fakes.tiny_vocabulary import byte_level_fields
from tests.fakes.toy_executor import toy_spec

PANEL, GROUP = 16, 32
Q8_0 = gguf.GGMLQuantizationType.Q8_0
PADDED = 16
"""Dimensions of a value in the KV cache, and of a key in int8."""
KEYS = LAYERS * KV_HEADS
"""Keys of a token, and as many values."""


def matrices(shapes):
    return {name: shape for name, shape in shapes.items() if len(shape) == 2}


def padded_outputs(name, outputs):
    """Outputs in memory: panels of 16, and each query, key and value head begins a panel."""
    if any(part in name for part in ("attn_q", "attn_k", "attn_v")):
        return outputs // HEAD_DIM * PANEL
    return -(-outputs // PANEL) * PANEL


@contextmanager
def tiny_engine(folder, *, tied, quantized, kv_dtype):
    """A ready engine with a tiny model, and the shapes of its tensors."""
    fields = model_fields() | byte_level_fields()
    shapes = model_shapes("llama", len(fields["tokenizer.ggml.tokens"]), tied=tied)
    tensors = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    types = dict.fromkeys(matrices(shapes), Q8_0) if quantized else {}
    tensors |= {name: gguf.quants.quantize(tensors[name], Q8_0) for name in types}
    path = write_gguf(folder / "tiny.gguf", fields, tensors, dtypes=types)
    config = EngineConfig(
        path, "tiny", kv_dtype=kv_dtype, block_size=16, kv_cache_bytes=1 << 20, threads=1
    )
    engine = AsyncPravahaEngine(config, probes=())
    engine.start()
    try:
        engine.wait_ready(60)
        yield engine, shapes
    finally:
        engine.shutdown()


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("quantized", [False, True], ids=["F32", "Q8_0"])
def test_a_steps_work_is_that_of_the_models_matrices(tmp_path, tied, quantized):
    with tiny_engine(tmp_path, tied=tied, quantized=quantized, kv_dtype="f16") as (engine, shapes):
        work = ModelWork.of(engine)
    multiplied = matrices(shapes)
    head = "token_embd.weight" if tied else "output.weight"
    if not tied:
        del multiplied["token_embd.weight"]
    counts = {name: outputs * inputs for name, (outputs, inputs) in multiplied.items()}
    vectors = sum(shape[0] for shape in shapes.values() if len(shape) == 1)
    # In Q8_0, 32 inputs of an output have 32 bytes and a scale of two.
    each = (GROUP + 2) / GROUP if quantized else 4
    nbytes = each * sum(
        padded_outputs(name, outputs) * inputs for name, (outputs, inputs) in multiplied.items()
    )
    kv = 3 * 10 * KEYS * 2 * (HEAD_DIM + PADDED)
    decode, prefill = work.decode(3, 10), work.prefill(7)
    assert decode.operations == 2 * 3 * (sum(counts.values()) + vectors)
    assert prefill.operations == 2 * 7 * (sum(counts.values()) - counts[head] + vectors)
    assert decode.nbytes - kv == prefill.nbytes
    if tied:
        assert 0 <= prefill.nbytes - nbytes < 64 * len(multiplied)  # each begins a cache line
    else:  # the embedding's share of the bytes is estimated; half of the heads' panels is padding
        assert prefill.nbytes == pytest.approx(nbytes, rel=0.03)
    assert work.integer == quantized


@pytest.mark.parametrize(
    ("kv_dtype", "pair_bytes"),  # a key and a value
    [
        ("f16", 2 * (HEAD_DIM + PADDED)),
        ("f32", 4 * (HEAD_DIM + PADDED)),
        ("int8", 2 * (PADDED + 4)),
    ],
)
def test_the_kv_of_a_token_is_its_keys_and_values_in_all_layers(tmp_path, kv_dtype, pair_bytes):
    with tiny_engine(tmp_path, tied=True, quantized=True, kv_dtype=kv_dtype) as (engine, _):
        work = ModelWork.of(engine)
    assert work.kv_bytes_per_token == KEYS * pair_bytes
    assert work.decode(1, 100).nbytes - work.decode(1, 0).nbytes == 100 * KEYS * pair_bytes


def test_the_figures_survive_the_way_to_another_process():
    work = ModelWork(1000, 2.5, 800, 100, 50, True, kv_reads=((0, 0.5), (64, 0.75)))
    assert ModelWork(**work.to_dict()) == work


CEILINGS = Ceilings({1_000: 100.0, 10_000: 50.0}, 400.0)


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (StepWork(900, 0.0), 9.0),
        (StepWork(8_000, 0.0), 160.0),  # at the bandwidth of the nearest footprint
        (StepWork(900, 8_000.0), 20.0),  # bound by operations
    ],
)
def test_the_bound_is_the_larger_of_reading_and_computing(work, seconds):
    assert CEILINGS.seconds(work) == seconds


def test_without_an_integer_peak_reading_is_the_bound():
    assert Ceilings({1_000: 100.0}, None).seconds(StepWork(900, 1e9)) == 9.0


def test_the_best_of_two_measurements_has_the_higher_of_each_ceiling():
    other = Ceilings({1_000: 120.0, 99: 7.0}, None)
    expected = Ceilings({99: 7.0, 1_000: 120.0, 10_000: 50.0}, 400.0)
    assert CEILINGS.best(other) == other.best(CEILINGS) == expected
    assert other.best(other).int8_ops_per_second is None


def test_layers_with_a_window_read_the_kv_in_it():
    work = ModelWork(1000, 10.0, 1000, 100, 0, True, kv_reads=((0, 0.25), (64, 0.75)))
    assert work.decode(2, 40).nbytes == 1000 + 2 * 40 * 10
    assert work.decode(2, 1000).nbytes == 1000 + 2 * (250 + 48) * 10


def test_a_step_reads_the_experts_that_its_tokens_choose():
    """Of 800 weights in experts a token uses a quarter; 200 others are used by all."""
    experts = {"expert_parameters": 800, "used_expert_parameters": 200}
    work = ModelWork(2000, 0.0, 1000, 100, 0, True, **experts)
    assert work.decode(1, 0) == StepWork(2 * (200 + 200), 2.0 * 400)
    assert work.decode(2, 0) == StepWork(2 * (200 + 350), 2.0 * 400 * 2)
    assert work.prefill(500) == StepWork(2 * 1000, 2.0 * 300 * 500)
    assert ModelWork(**work.to_dict()) == work


def test_reads_are_counted_by_window_and_by_the_layers_that_share_keys():
    full = Attention(num_heads=4, num_kv_heads=2, head_dim=8, scale=1.0, rope=None)
    sliding = replace(full, window=64, num_kv_heads=1)
    attentions = (sliding, sliding, full, replace(full, kv_layer=2))
    layers = tuple(LayerSpec(attention, None, {}) for attention in attentions)
    assert _kv_reads(replace(toy_spec(), layers=layers)) == ((0, 1.0), (64, 0.5))
