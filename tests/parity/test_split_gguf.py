"""A model split into several GGUF files computes what the whole one does."""

import numpy as np

from engine.executors.open_model import open_model
from engine.memory.kv_identity import kv_salt
from tests.parity.loading import load_stepper
from tests.parity.quantised_models import write_model
from tests.parity.stepper import Run


def results(path):
    stepper = load_stepper(path, rows=2)
    runs = [Run([5, 9, 2, 11], 24, sampling={"num_logprobs": 3}), Run(list(range(60)), 8, score=2)]
    stepper.run(runs)
    weight_bytes = stepper.executor._core.info["weight_bytes"]
    stepper.executor.close()
    return runs, weight_bytes


def test_logprobs_and_tokens_are_those_of_the_whole_model(tmp_path):
    whole, whole_bytes = results(write_model(tmp_path / "whole.gguf", "Q8_0"))
    first = write_model(tmp_path / "split.gguf", "Q8_0", max_tensors=5)
    assert first.name == "split-00001-of-00004.gguf"
    split, split_bytes = results(first)
    assert split_bytes == whole_bytes
    for one, other in zip(split, whole, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_array_equal(one.logprobs, other.logprobs)
        np.testing.assert_array_equal(one.prompt_logprobs, other.prompt_logprobs)


def test_a_change_of_any_part_changes_the_kv_identity(tmp_path):
    from engine.api.config import EngineConfig

    first = write_model(tmp_path / "split.gguf", "Q8_0", max_tensors=5)
    config = EngineConfig(first, "split")
    before = kv_salt(open_model(first), config)
    last = open_model(first).paths[-1]
    last.write_bytes(last.read_bytes() + bytes(32))
    assert kv_salt(open_model(first), config) != before
