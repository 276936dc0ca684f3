"""Leaves these tests out where onnx or onnxruntime is missing; limits torch to one thread."""

import pytest
import torch

try:
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
