"""Files of families' shapes are read as their sizes say, and the work of a step is what it must read."""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import gguf
import pytest

from benchmarks import families, family_shapes
from benchmarks.driven_engine import Recipe
from benchmarks.families import GOALS, LLAMA, SHAPES, goal_table, report
from benchmarks.family_files import write_family
from benchmarks.family_shapes import FAMILY_SHAPES, FamilyShape
from benchmarks.family_work import FamilyWork
from benchmarks.format_parts import earlier_parts
from benchmarks.machine import ROOT
from benchmarks.synthetic_models import SPREAD
from engine.executors.open_model import open_model
from engine.models.families.registry import GGUF_FAMILIES
from engine.models.gguf import read_spec
from engine.models.spec import GatedDeltaNet, ShortConv
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

PARAMETERS = {
    "qwen3.5-0.8b": 0.75e9,
    "qwen3.5-4b": 4.2e9,
    "lfm2-1.2b": 1.17e9,
    "gemma3-1b": 1.0e9,
    "gemma4-e2b": 4.63e9,
    "olmoe-7b-a1b": 6.92e9,
    "lfm2-8b-a1b": 8.34e9,
    "gpt-oss-6-layers": 6.1e9,
}
"""Of the published models' text parts; of gpt-oss 6 of 24 layers of 20.9e9, and its embeddings."""
TOY = ROOT / "tests" / "fakes" / "toy_driver.py"


def small(shape: FamilyShape, vocabulary: int = 320) -> FamilyShape:
    """A shape with a small vocabulary."""
    tensors = {
        name: (vocabulary, *dims[1:]) if dims[0] == shape.vocabulary else dims
        for name, dims in shape.tensors.items()
    }
    return replace(shape, vocabulary=vocabulary, tensors=tensors)


QWEN35 = small(
    family_shapes._qwen35(layers=4, hidden=64, heads=2, kv_heads=1, value_heads=16, inner=96)
)


@pytest.mark.parametrize("name", FAMILY_SHAPES)
def test_a_shape_has_the_parameters_of_its_model(name):
    total = sum(math.prod(dims) for dims in FAMILY_SHAPES[name].tensors.values())
    assert total == pytest.approx(PARAMETERS[name], rel=0.01)


@pytest.mark.parametrize(
    "name",
    [name for name, shape in FAMILY_SHAPES.items() if shape.architecture in GGUF_FAMILIES],
)
def test_our_reader_finds_the_layers_keys_and_states_of_a_shape(name):
    shape = FAMILY_SHAPES[name]
    fields = {f"{shape.architecture}.{key}": value for key, value in shape.fields.items()}
    spec = read_spec(
        {"general.architecture": shape.architecture} | fields,
        shape.tensors,
        source=name,
        rope_tables={"rope_freqs.weight": [1.0] * 256} if name == "gemma4-e2b" else {},
    )
    assert (spec.vocab_size, spec.num_layers) == (shape.vocabulary, shape.fields["block_count"])
    read = [(one.window, 2 * one.num_kv_heads * one.head_dim) for one in spec.attentions]
    assert tuple(read) == shape.kv_reads
    states = 0
    for layer in spec.layers:
        match layer.mixer:
            case GatedDeltaNet() as net:
                keys, values = net.num_key_heads * net.key_dim, net.num_heads * net.value_dim
                states += values * net.key_dim + (2 * keys + values) * (net.kernel - 1)
            case ShortConv(kernel):
                states += spec.hidden_size * (kernel - 1)
    assert states == shape.state_elements


def test_a_small_file_of_a_shape_is_written_and_runs(tmp_path):
    path = tmp_path / "qwen35.gguf"
    write_family("small", QWEN35, write_tiny_gguf(tmp_path / "demo.gguf"), path)
    opened = open_model(path)
    assert opened.parameters == sum(math.prod(dims) for dims in QWEN35.tensors.values())
    assert opened.tokenizer.decode(opened.tokenizer.encode("Hello")) == "Hello"
    stepper = load_stepper(path)
    run = Run([1, 2, 3], 4)
    stepper.run([run])
    stepper.executor.close()
    assert len(run.tokens) == 4
    assert not run.failed


def test_experts_of_gpt_oss_are_written_in_mxfp4(tmp_path):
    shape = FamilyShape(
        "gpt-oss",
        320,
        {"block_count": 1},
        {
            "token_embd.weight": (320, 64),
            "blk.0.attn_sinks.weight": (8,),
            "blk.0.ffn_gate_inp.weight": (4, 64),
            "blk.0.ffn_gate_exps.weight": (4, 96, 64),
            "blk.0.ffn_gate_exps.bias": (4, 96),
        },
        (),
        experts=(4, 2),
        file_type="mxfp4",
    )
    write_family("small", shape, write_tiny_gguf(tmp_path / "demo.gguf"), tmp_path / "a.gguf")
    tensors = {one.name: one for one in gguf.GGUFReader(str(tmp_path / "a.gguf")).tensors}
    assert {name: one.tensor_type.name for name, one in tensors.items()} == {
        "token_embd.weight": "Q8_0",
        "blk.0.attn_sinks.weight": "F32",
        "blk.0.ffn_gate_inp.weight": "F32",
        "blk.0.ffn_gate_exps.weight": "MXFP4",
        "blk.0.ffn_gate_exps.bias": "F32",
    }
    for name, one in tensors.items():
        assert tuple(reversed(one.shape.tolist())) == shape.tensors[name]
    values = gguf.quants.dequantize(
        tensors["blk.0.ffn_gate_exps.weight"].data, gguf.GGMLQuantizationType.MXFP4
    )
    assert SPREAD / 2 < values.std() < 2 * SPREAD


SHAPE = FamilyShape(
    "olmoe",
    100,
    {},
    {
        "token_embd.weight": (100, 10),
        "output.weight": (100, 10),
        "blk.0.attn_q.weight": (10, 10),
        "blk.0.ffn_up_exps.weight": (4, 10, 10),
    },
    kv_reads=((0, 8), (16, 8)),
    state_elements=5,
    experts=(4, 1),
)


def test_a_step_reads_chosen_experts_windows_and_states_and_no_lookup():
    stored = {name: float(math.prod(dims)) for name, dims in SHAPE.tensors.items()}
    work = FamilyWork(SHAPE, stored, kv_bytes=2.0)
    one = work.decode(1, 32)
    assert one.nbytes == 1000 + 100 + 100 + 2 * 8 * (32 + 16) + 2 * 4 * 5
    assert one.operations == 2 * (1000 + 100 + 100)
    two = work.decode(2, 32)
    # The second row chooses another expert in three of four cases.
    assert two.nbytes == 1000 + 100 + 175 + 2 * (2 * 8 * (32 + 16) + 2 * 4 * 5)
    assert work.prefill(2).operations == 2 * 2 * (100 + 100)
    tied = replace(SHAPE, tensors={k: v for k, v in SHAPE.tensors.items() if k != "output.weight"})
    tied_stored = {name: stored[name] for name in tied.tensors}
    assert FamilyWork(tied, tied_stored, 2.0).decode(1, 32) == one


def test_bytes_are_those_of_the_file_as_widened_by_the_engine(tmp_path):
    path = tmp_path / "qwen35.gguf"
    write_family("small", QWEN35, write_tiny_gguf(tmp_path / "demo.gguf"), path)
    stored = sum(int(one.n_bytes) for one in gguf.GGUFReader(str(path)).tensors)
    work = FamilyWork.of(QWEN35, path, 2 * stored, "f16")
    assert sum(work.tensor_bytes.values()) == pytest.approx(2 * stored)
    # All weights are read: the embedding is the head.
    context, streams = 128, 3
    kv = streams * context * 2 * 2 * 256
    states = streams * 2 * 4 * QWEN35.state_elements
    assert work.decode(streams, context).nbytes == pytest.approx(2 * stored + kv + states, abs=2)


def test_shapes_are_measured_in_parts_and_shown_beside_their_goals(tmp_path, monkeypatch):
    assert {*GOALS, LLAMA} == {*SHAPES}

    def toy(engine, **speeds):
        path = tmp_path / f"{engine}.json"
        path.write_text(json.dumps({"engine": engine, **speeds}))
        return Recipe(TOY, Path(sys.executable), path)

    ours = toy("pravaha", prefill=2600.0, decode=300.0)
    monkeypatch.setattr(families, "quantized", lambda *_: ours.model)
    monkeypatch.setattr(families, "our_recipe", lambda *_: ours)
    monkeypatch.setattr(
        families, "peer_recipe", lambda *_: toy("llama.cpp", prefill=1000.0, decode=100.0)
    )
    options = argparse.Namespace(
        dir=tmp_path, cache=tmp_path, json=tmp_path / "result.json", threads=1, rounds=1,
        new_tokens=8, baseline=None,
    )  # fmt: skip
    measured = families.Part(LLAMA, options)
    measured.measure(["1x128", "prefill512"], float("inf"))
    measured.discard()
    assert not ours.model.exists()
    (part,) = earlier_parts(options.json)
    assert list(part["columns"]) == ["1x128", "prefill512"]
    assert "| llama-1b Q4_K_M, 0 MB, packed 1 | pravaha Q4_1 | 300 (300) |" in report([part])
    assert goal_table([part]) == []  # it has none
    (row,) = goal_table([part | {"shape": "qwen3.5-0.8b"}])[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == "qwen3.5-0.8b"
    assert cells[1].startswith("3.00 / 2.50, ")
    assert cells[2] == "– / 3.00"
    assert cells[-1] == "**2.60** / 3.00"


def test_an_engine_that_does_not_know_a_model_is_left_out(tmp_path, monkeypatch, capsys):
    missing = Recipe(TOY, tmp_path / "nowhere", tmp_path / "model.json")
    (tmp_path / "model.json").write_text("{}")
    monkeypatch.setattr(families, "quantized", lambda *_: missing.model)
    monkeypatch.setattr(families, "our_recipe", lambda *_: missing)
    monkeypatch.setattr(families, "peer_recipe", lambda *_: missing)
    options = argparse.Namespace(
        dir=tmp_path, cache=tmp_path, json=None, threads=1, rounds=1, new_tokens=8, baseline=None
    )
    part = families.Part(LLAMA, options)
    part.measure(["1x128"], float("inf"))
    assert part.result["columns"] == {}
    assert "llama-1b is skipped: Pravāha did not start" in capsys.readouterr().err
