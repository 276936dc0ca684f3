"""Skips the tests where onnx or onnxruntime is missing; limits torch to one thread, as in its own tests."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import torch


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
