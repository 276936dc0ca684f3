"""`benchmarks/scaling.py` and `accuracy.py`: what they make their files and figures of."""

from dataclasses import replace

import gguf
import numpy as np
import pytest

from benchmarks.accuracy import rewrite
from benchmarks.engine_turns import lowest_ratios, throughput, turns
from benchmarks.scaling import AGENTS, PREFIX_TOKENS, agents
from benchmarks.synthetic_models import (
    LLAMA_SHAPES,
    SHAPES,
    SPREAD,
    Shape,
    q4_0,
    q4_1,
    q8_0,
    synthetic_model,
)
from engine.executors.open_model import open_model
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

TINY = Shape("tiny", hidden=64, layers=2, heads=4, kv_heads=2, feed_forward=96, vocabulary=300)


@pytest.fixture
def demo(tmp_path):
    """A file with a tokenizer to take; its folder is not that of the synthetic models."""
    return write_tiny_gguf(tmp_path / "demo.gguf")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (q4_0, gguf.GGMLQuantizationType.Q4_0),
        (q4_1, gguf.GGMLQuantizationType.Q4_1),
        (q8_0, gguf.GGMLQuantizationType.Q8_0),
    ],
)
def test_random_blocks_are_weights_of_the_stated_spread(make, kind):
    weights = gguf.quants.dequantize(make(np.random.default_rng(0), 64, 256), kind)
    assert weights.shape == (64, 256)
    assert np.std(weights) == pytest.approx(SPREAD, rel=0.05)
    assert abs(np.mean(weights)) < SPREAD / 10


@pytest.mark.parametrize("weights", ["q4_1", "q4_0", "f16"])
def test_a_synthetic_model_is_written_once_and_runs(demo, tmp_path, weights):
    folder = tmp_path / "cache"
    path = synthetic_model(TINY, demo, folder, weights)
    assert list(folder.iterdir()) == [path]
    written = path.stat().st_mtime_ns
    assert synthetic_model(TINY, demo, folder, weights).stat().st_mtime_ns == written
    assert weights in path.name
    opened = open_model(path)
    assert (opened.spec.vocab_size, opened.spec.hidden_size) == (300, 64)
    assert opened.tokenizer.encode("Hello") == open_model(demo).tokenizer.encode("Hello")
    stepper = load_stepper(path)
    run = Run([1, 2, 3], 4)
    stepper.run([run])
    stepper.executor.close()
    assert len(run.tokens) == 4
    assert not run.failed


@pytest.mark.parametrize(
    ("shape", "millions"),
    [
        (SHAPES["0.5B"], 494.0),
        (SHAPES["1.5B"], 1543.7),
        (LLAMA_SHAPES["1B"], 1235.8),
        (LLAMA_SHAPES["3B"], 3212.7),
    ],
    ids=lambda shape: getattr(shape, "name", ""),
)
def test_the_shapes_have_as_many_parameters_as_the_models(shape, millions):
    layer = shape.hidden * (2 * shape.hidden + 2 * shape.kv_size + 3 * shape.feed_forward)
    vectors = 2 * shape.hidden + (shape.hidden + 2 * shape.kv_size if shape.biases else 0)
    total = shape.layers * (layer + vectors) + shape.vocabulary * shape.hidden + shape.hidden
    assert total / 1e6 == pytest.approx(millions, abs=0.1)


def test_a_llama_shape_is_read_as_one(demo, tmp_path):
    tiny = replace(
        LLAMA_SHAPES["1B"], hidden=256, layers=1, heads=8, feed_forward=96, vocabulary=300
    )
    spec = open_model(synthetic_model(tiny, demo, tmp_path / "cache", "f16")).spec
    assert (spec.architecture, spec.num_kv_heads, spec.rope_theta) == ("llama", 8, 5e5)


@pytest.mark.parametrize("weights", ["F32", "BF16", "Q8_0"])
def test_a_rewritten_model_has_the_same_fields_and_nearly_the_same_weights(tmp_path, demo, weights):
    source = synthetic_model(TINY, demo, tmp_path)
    target = tmp_path / "again.gguf"
    rewrite(source, target, gguf.GGMLQuantizationType[weights])
    before, after = gguf.GGUFReader(str(source)), gguf.GGUFReader(str(target))
    kept = {n for n in before.fields if not n.startswith("GGUF.") and n != "general.file_type"}
    assert kept <= set(after.fields)
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert old.name == new.name
        expected, got = (gguf.quants.dequantize(t.data, t.tensor_type) for t in (old, new))
        tolerance = {"F32": 0.0, "BF16": 2**-8, "Q8_0": 2**-7}[weights] * np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_agents_share_the_prefix_of_their_run_alone():
    one, other = agents(1), agents(2)
    assert one == agents(1)
    assert len(one) == AGENTS
    assert len({tuple(prompt[:PREFIX_TOKENS]) for prompt in one}) == 1
    assert len({tuple(prompt[PREFIX_TOKENS:]) for prompt in one}) == AGENTS
    assert one[0][:PREFIX_TOKENS] != other[0][:PREFIX_TOKENS]


def test_everybody_begins_a_round_in_turn():
    assert list(turns(["a", "b"], 3)) == [
        (0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b"),
    ]  # fmt: skip
    assert list(turns([], 2)) == []


def test_throughput_is_of_the_difference_of_the_fastest_and_of_the_median_runs():
    assert throughput(64, [1.0, 2.0, 9.0], [3.0, 9.0, 10.0]) == {
        "best": 32.0,
        "median": pytest.approx(64 / 7),
    }
    assert throughput(64, [2.0], [1.0]) == {"best": None, "median": None}


def test_the_ratio_is_over_the_fastest_peer_whose_figure_is_known():
    ours = {"best": 8.0, "median": 6.0}
    peers = [{"best": 2.0, "median": None}, {"best": 4.0, "median": 3.0}]
    assert lowest_ratios(ours, peers) == {"best": 2.0, "median": 2.0}
    assert lowest_ratios(ours, []) == {}
