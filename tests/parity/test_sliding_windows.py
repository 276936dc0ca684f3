"""Which layers of a config.json have a sliding window: those that have one in transformers."""

import json

import pytest
from transformers import AutoConfig

from tests.fakes.tiny_checkpoint import tiny_config
from tests.unit.models.test_safetensors_spec import windows_of


@pytest.mark.parametrize(
    ("architecture", "changes", "windows"),
    [
        ("qwen2", {"sliding_window": 8, "use_sliding_window": False}, (0, 0)),
        ("qwen2", {"sliding_window": 8, "use_sliding_window": True}, (0, 0)),
        (
            "qwen2",
            {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1},
            (0, 8),
        ),
        (
            "qwen3",
            {
                "sliding_window": 8,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            (8, 0),
        ),
    ],
)
def test_sliding_windows_are_those_of_transformers(tmp_path, architecture, changes, windows):
    config = tiny_config(architecture, **changes)
    assert windows_of(architecture, **changes) == windows
    (tmp_path / "config.json").write_text(json.dumps(config))
    theirs = AutoConfig.from_pretrained(tmp_path)
    kinds = [kind == "sliding_attention" for kind in theirs.layer_types]
    assert tuple(theirs.sliding_window if kind else 0 for kind in kinds) == windows
