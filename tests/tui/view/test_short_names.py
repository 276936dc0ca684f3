"""Names of models, told apart in a few cells."""

import pytest

from app.tui.view.short_names import short_names


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("qwen2.5-coder-0.5b-q4_k_m", "qwen2.5-coder-1.5b-q4_k_m"), ("0.5b", "1.5b")),
        (("qwen2.5-coder-1.5b", "smollm2"), ("qwen2.5-coder-1.5b", "smollm2")),
        (("qwen3", "qwen3-coder"), ("qwen3", "qwen3-coder")),
        (("one",), ("one",)),
        ((), ()),
        (("a-q4", "a-q8", "b-q4"), ("a-q4", "a-q8", "b-q4")),
    ],
)
def test_short_names(names, short):
    assert tuple(short_names(names)[name] for name in names) == short
