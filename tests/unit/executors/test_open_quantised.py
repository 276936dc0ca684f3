"""Directories with quantised checkpoints, opened for the native executor."""

import pytest

from engine.api.config import EngineConfig
from engine.api.errors import UnsupportedByNativeError
from engine.executors.open_model import open_model
from tests.fakes.tiny_checkpoint import tiny_config, write_checkpoint


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "bits must be 4 or 8, not 3"),
        ({"quant_method": "fp8"}, "quant_method must be gptq or awq or compressed-tensors"),
    ],
)
def test_what_is_not_supported_is_refused_by_its_field(tmp_path, settings, field):
    directory = write_checkpoint(tmp_path, config=tiny_config(quantization_config=settings))
    with pytest.raises(UnsupportedByNativeError, match=field):
        open_model(directory, EngineConfig(directory, "x", executor="native"))
