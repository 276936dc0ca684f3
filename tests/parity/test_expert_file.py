"""Weights of models with experts are packed into the weight cache and mapped, also if memory is too small."""

import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from engine import _core
from engine._core import verify_packed
from engine.api.config import EngineConfig
from engine.api.errors import ModelDoesNotFit, ModelError
from engine.api.request import Request, SamplingParams
from engine.executors.memory_plan import plan_native
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model
from engine.executors.weight_cache import WeightCache
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from engine.runtime.engine import AsyncPravahaEngine
from tests.parity.cached_loading import LIMIT, answer, every_model_kept, load, packed_state
from tests.parity.expert_gguf import write_expert_gguf, write_float_gguf
from tests.parity.loading import read_headers
from tests.parity.test_weight_cache import files, files_limited_to, process
from tests.parity.tiny_experts import TINY_EXPERTS
from tests.parity.tiny_models import TinyModel, save_tiny_model

MIB = 1 << 20
TIMEOUT_S = 300
BY_NAME = {tiny.name: tiny for tiny in TINY_EXPERTS}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_expert_gguf(path, "qwen3moe", "Q4_K")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "weights"


def mapped(file: Path) -> bool:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return any(line.endswith(str(file)) and " r--s " in line for line in lines)


def config_for(path: Path, folder: Path | None, **changes: object) -> EngineConfig:
    config = EngineConfig(
        path,
        "tiny",
        kv_dtype="f16",
        block_size=16,
        max_num_seqs=2,
        threads=2,
        weight_cache_bytes=LIMIT,
    )
    return replace(config, weight_cache_dir=folder, **changes)  # type: ignore[arg-type]


def load_with(path: Path, config: EngineConfig, progress=lambda share: None) -> NativeExecutor:
    spec, paths, _ = read_headers(path)
    with every_model_kept():
        return NativeExecutor.load(
            spec, paths, config, num_blocks=32, max_model_len=128, progress=progress
        )


@pytest.mark.parametrize("tiny", TINY_EXPERTS, ids=lambda tiny: tiny.name)
def test_the_first_load_packs_into_the_file_and_maps_it(
    tiny: TinyModel, tmp_path: Path, folder: Path
) -> None:
    save_tiny_model(tiny, tmp_path, torch.bfloat16)
    slots = {"state_slots": 2}
    expected = answer(load_with(tmp_path, config_for(tmp_path, None, **slots)))
    first = load_with(tmp_path, config_for(tmp_path, folder, **slots))
    assert packed_state(first) == "missing"
    assert first._saver is None
    (file,) = files(folder)
    verify_packed(file)
    assert mapped(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert answer(first) == expected
    second = load_with(tmp_path, config_for(tmp_path, folder, **slots))
    assert packed_state(second) == "mapped"
    assert answer(second) == expected


def test_quantized_experts_and_weights_that_are_quantized_at_load(
    model: Path, tmp_path: Path, folder: Path
) -> None:
    assert answer(load(model, folder)) == answer(load(model, None))
    save_tiny_model(BY_NAME["olmoe"], tmp_path, torch.bfloat16)
    kept, packed = (config_for(tmp_path, where, weights="q8") for where in (folder, None))
    assert answer(load_with(tmp_path, kept)) == answer(load_with(tmp_path, packed))


def test_progress_grows_to_one(model: Path, folder: Path) -> None:
    shares: list[float] = []
    load_with(model, config_for(model, folder), shares.append).close()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_load_that_is_stopped_leaves_nothing(model: Path, folder: Path) -> None:
    class StoppedError(Exception):
        """The engine shuts down."""

    def stop(share: float) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        load_with(model, config_for(model, folder), stop)
    assert files(folder) == []


def test_processes_that_pack_at_once_share_one_whole_file(model: Path, folder: Path) -> None:
    running = [process(model, folder) for _ in range(3)]
    outputs = [started.communicate(timeout=TIMEOUT_S)[0].strip() for started in running]
    assert all(started.returncode == 0 for started in running)
    assert set(outputs) <= {"missing", "mapped"}
    (file,) = files(folder)
    verify_packed(file)


def test_a_process_killed_while_packing_leaves_nothing_that_is_used(
    model: Path, folder: Path
) -> None:
    killed = process(model, folder, 100_000)
    killed.communicate(timeout=TIMEOUT_S)
    assert killed.returncode == -signal.SIGXFSZ
    (unfinished,) = files(folder)
    assert unfinished.name.endswith(".packed.part")
    assert answer(load(model, folder)) == answer(load(model, None))
    (file,) = files(folder)  # the unfinished one is gone
    verify_packed(file)


@pytest.mark.parametrize("needed", [False, True])
def test_a_disk_that_fills_while_packing_is_one_sentence(
    needed: bool, model: Path, folder: Path
) -> None:
    config = config_for(model, folder, needs_weight_cache=needed)
    with files_limited_to(100_000), pytest.raises(ModelError) as refusal:
        load_with(model, config)
    sentence = str(refusal.value)
    assert sentence.startswith(f"The packed weights cannot be written to {folder}")
    assert "free disk space there" in sentence
    assert ("--weight-cache-bytes to 0" in sentence) is not needed
    assert files(folder) == []


def test_without_room_the_experts_are_packed_in_memory_if_they_fit(
    model: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = config_for(model, folder, weight_cache_bytes=100_000)
    with caplog.at_level(logging.INFO):
        loaded = load_with(model, config)
    assert "could not be kept" in caplog.text
    assert answer(loaded) == answer(load(model, None))
    assert files(folder) == []
    with pytest.raises(ModelError) as refusal:
        load_with(model, replace(config, needs_weight_cache=True))
    assert "tiny is larger than memory, and its experts cannot be read from disk: " in str(
        refusal.value
    )
    assert "raise it" in str(refusal.value)


def test_a_folder_that_cannot_be_made_is_one_line_in_the_log(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    loaded = load_with(model, config_for(model, tmp_path / "file" / "weights"))
    assert answer(loaded) == answer(load(model, None))
    assert "cannot be written" in caplog.text


def test_the_plan_has_what_a_token_uses(tmp_path: Path, folder: Path) -> None:
    """With all experts used it is everything; each other one takes as much less."""

    def plan(used: int, cached: Path | None):
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(config | {"num_experts_per_tok": used}))
        spec, paths, _ = read_headers(tmp_path)
        planned = config_for(tmp_path, cached)
        with every_model_kept():
            return plan_native(spec, paths, planned, kv_dtype="f16", max_model_len=128)

    save_tiny_model(BY_NAME["olmoe"], tmp_path, torch.float32)
    by_used = {used: plan(used, folder) for used in (9, 8, 3)}
    assert by_used[9].active_bytes == by_used[9].weight_bytes
    each = by_used[9].weight_bytes - by_used[8].resident_bytes
    assert by_used[3].resident_bytes == by_used[9].weight_bytes - 6 * each
    # Gate and up have 112 outputs of 96 inputs, down the reverse; of 4 bytes, in three layers.
    assert each == 3 * 3 * 112 * 96 * 4
    without = plan(3, None)
    assert without.resident_bytes == without.weight_bytes
    assert without.shortage == "the weight cache is off: set --weight-cache-bytes"


def test_an_engine_runs_a_model_that_is_larger_than_its_share_of_memory(
    tmp_path: Path, folder: Path
) -> None:
    path = write_float_gguf(
        tmp_path / "tiny.gguf", save_tiny_model(BY_NAME["olmoe"], tmp_path, torch.float32)
    )
    prompt, sampling = (
        tuple(range(5, 45)),
        SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True),
    )

    def tokens(config: EngineConfig) -> tuple[int, ...]:
        engine = AsyncPravahaEngine(config)
        engine.start()
        try:
            engine.wait_ready(TIMEOUT_S)
            return engine.submit(Request(prompt, sampling)).wait_result(TIMEOUT_S).token_ids
        finally:
            engine.shutdown()

    config = config_for(path, folder, kv_cache_bytes=1 << 20, max_num_batched_tokens=64)
    with every_model_kept():
        plan = open_model(path, config).plan_memory(config, kv_dtype="f16", max_model_len=256)
        share = plan.resident_bytes + plan.work_bytes + MIB + MIB // 8
        assert share < plan.weight_bytes + plan.work_bytes + MIB
        small = replace(config, memory_bytes=share)
        assert tokens(small) == tokens(replace(config, weight_cache_dir=None))
    assert len(files(folder)) == 1
    with pytest.raises(ModelDoesNotFit, match="the weight cache is off"):
        AsyncPravahaEngine(replace(small, weight_cache_dir=None)).check_memory_share()


SCRIPT = """
import sys
from pathlib import Path
from tests.parity.cached_loading import load

def held(key):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024

load(Path(sys.argv[1]), Path(sys.argv[3]) / "small").close()  # modules, and memory that the allocator keeps
Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
before = held("VmRSS")
executor = load(Path(sys.argv[2]), Path(sys.argv[3]))
print(held("VmHWM") - before, executor.info.weight_bytes)
"""

HIDDEN, INNER = 512, 512
NORMS = ("input", "post_attention")


def write_experts(directory: Path, count: int) -> Path:
    """Qwen3 with experts, two layers in F16; each expert takes 1.5 MiB in each."""
    config = {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "moe_intermediate_size": INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_experts": count,
        "num_experts_per_tok": 2,
        "norm_topk_prob": True,
        "vocab_size": 512,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    }
    shapes = {"model.embed_tokens.weight": (512, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for index in range(2):
        layer = f"model.layers.{index}."
        shapes |= {f"{layer}self_attn.{part}_proj.weight": (HIDDEN, HIDDEN) for part in "qkvo"}
        shapes |= {f"{layer}self_attn.{part}_norm.weight": (64,) for part in "qk"}
        shapes |= {f"{layer}{part}_layernorm.weight": (HIDDEN,) for part in NORMS}
        shapes[f"{layer}mlp.gate.weight"] = (count, HIDDEN)
        for expert in range(count):
            name = f"{layer}mlp.experts.{expert}."
            shapes |= {f"{name}{part}_proj.weight": (INNER, HIDDEN) for part in ("gate", "up")}
            shapes[f"{name}down_proj.weight"] = (HIDDEN, INNER)
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    pattern = np.linspace(-0.1, 0.1, 1 << 18).astype(np.float16)
    tensors = {
        name: np.roll(pattern, nth)[: int(np.prod(shape))].reshape(shape)
        for nth, (name, shape) in enumerate(shapes.items())
    }
    save_file(tensors, directory / "model.safetensors")
    return directory


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_packing_holds_a_small_part_of_the_file(tmp_path: Path) -> None:
    small, large = write_experts(tmp_path / "small", 4), write_experts(tmp_path / "large", 64)
    kept = tmp_path / "kept"
    command = [sys.executable, "-c", SCRIPT, str(small), str(large), str(kept)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    peak, weights = map(int, ran.stdout.split())
    assert weights > 192 * MIB
    # A batch and its pages of the source, what every step reads of the mapped file, and pages of the source
    # that the system mapped around others: a fifth of tensors of 512 KiB, dropped when memory is short.
    assert peak < weights // 2
    (file,) = (path for path in files(kept) if path.is_file())
    verify_packed(file)
    assert file.read_bytes() == saved_from_memory(large, tmp_path / "saved").read_bytes()


def saved_from_memory(path: Path, folder: Path) -> Path:
    """The file of the weights that are packed in memory, as those of models without experts are."""
    spec, paths, _ = read_headers(path)
    with every_model_kept():
        config = config_for(path, folder)
        identity = WeightCache(folder, LIMIT).location(path, paths)
    core = _core.NativeExecutor(
        spec.to_json(),
        list(paths),
        num_blocks=4,
        block_size=config.block_size,
        weights="stored",
        kv_dtype="f16",
        threads=2,
        dispatch="auto",
        max_rows=2,
        max_batched_tokens=64,
        max_model_len=64,
        packed_weights=identity,
    )
    saving = core.packed_saving()
    assert saving is not None
    assert saving.save() == "done"
    core.close()
    return saving.path


def test_models_show_states_total_and_active_sizes(model: Path, tmp_path: Path) -> None:
    environ = os.environ | {CACHE_DIR_VARIABLE: str(tmp_path)}

    def show(*words: str) -> str:
        command = [sys.executable, "-c", "from app.cli import main; main()"]
        words = ("models", "show", str(model), *words)
        done = subprocess.run([*command, *words], env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    facts = json.loads(show("--json"))
    # Three of six experts of three matrices of 256 × 256 in three layers are not used.
    unused = 3 * 3 * 3 * 256 * 256
    assert facts["parameters"] - facts["active_parameters"] == unused
    assert facts["active_bytes"] == facts["resident_bytes"] < facts["weight_bytes"]
    text = show()
    total, active = (facts[key] / 1e6 for key in ("parameters", "active_parameters"))
    assert f"(total {total:.1f} M, active {active:.1f} M)" in text
    assert "of weights per token; other experts may stay on disk" in text
