"""Limits torch to one thread, as several test processes share the machine; interprets kernels once."""

from itertools import groupby

import pytest
import torch

from tests.torch_executor.running_cases import lines_of


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def interpreted(tmp_path_factory):
    """The lines of each module of kernel cases, with interpreted kernels and one fused architecture."""
    settings = {"TRITON_INTERPRET": "1", "FUSED_ARCHITECTURES": "gemma3"}
    lines = lines_of("interpreted_cases", tmp_path_factory.mktemp("triton"), **settings)
    parts = [list(part) for _, part in groupby(lines, lambda line: isinstance(line, str))]
    return {name: part for (name,), part in zip(parts[::2], parts[1::2], strict=True)}
