"""Several arrays in one copy, to a device and back."""

import numpy as np
import pytest
import torch

from engine.executors.torch.packed_copy import to_device, to_host
from tests.torch_executor.loaded import DEVICE

ARRAYS = {
    "odd": np.array([True, False, True]),
    "ids": np.arange(6, dtype=np.int64).reshape(2, 3) * 2**40,
    "rows": np.array([[1], [-2]], np.int32),
    "none": np.zeros(0, np.int32),
    "shares": np.array([0.5, np.nan, -np.inf], np.float32),
    "every second": np.arange(8, dtype=np.float32)[::2],
}


def test_there_and_back():
    tensors = to_device(ARRAYS, torch.device(DEVICE))
    assert {tensor.device.type for tensor in tensors.values()} == {DEVICE}
    back = to_host(tensors)
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def test_parts_are_aligned_and_may_be_changed_at_once():
    changed = np.arange(5, dtype=np.int32)
    tensors = to_device({"odd": ARRAYS["odd"], "changed": changed}, torch.device(DEVICE))
    changed[:] = 0
    assert tensors["changed"].tolist() == [0, 1, 2, 3, 4]
    assert all(tensor.data_ptr() % 16 == 0 for tensor in tensors.values())


def test_nothing_is_no_copy():
    assert to_device({}, torch.device(DEVICE)) == {}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_many_copies_in_flight_do_not_overwrite_each_other():
    device = torch.device("cuda")
    kept = [to_device({"one": np.full(1 << 16, at, np.int32)}, device)["one"] for at in range(200)]
    for at, tensor in enumerate(kept):
        assert (tensor == at).all()
