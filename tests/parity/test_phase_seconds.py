"""Phase timing of the native executor."""

import time

from engine.api.config import EngineConfig
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.parity.stepper import Run, Stepper


def test_phases_are_timed_only_on_request_and_sum_to_at_most_the_run(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    model = open_model(path)
    config = EngineConfig(path, "tiny", kv_dtype="f16", threads=2, block_size=16, max_num_seqs=2)
    executor = NativeExecutor.load(
        model.spec,
        model.paths,
        config,
        num_blocks=16,
        max_model_len=64,
        progress=lambda share: None,
    )
    stepper = Stepper(executor, config, num_blocks=16, max_model_len=64)
    stepper.run([Run([1, 2, 3], 4)])
    assert set(executor.take_phase_seconds().values()) == {0.0}

    executor.time_phases(True)
    begin = time.perf_counter()
    stepper.run([Run([1, 2, 3], 4)])
    elapsed = time.perf_counter() - begin
    phases = executor.take_phase_seconds()
    assert list(phases)[:4] == ["embed", "prepare", "qkv", "attention"]
    assert phases["router"] == 0.0  # of models with experts
    assert all(seconds > 0.0 for name, seconds in phases.items() if name != "router"), phases
    assert sum(phases.values()) <= elapsed

    executor.time_phases(False)
    stepper.run([Run([1, 2, 3], 4)])
    assert set(executor.take_phase_seconds().values()) == {0.0}
    executor.close()
