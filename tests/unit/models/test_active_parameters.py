"""The number of weights that a token uses, of published shapes with experts."""

from math import prod

import pytest

from benchmarks.family_shapes import FAMILY_SHAPES
from engine.models.gguf import read_spec

BILLION = 1e9


def counts(name):
    """The number of weights of a shape, and of those that a token uses."""
    shape = FAMILY_SHAPES[name]
    fields = {f"{shape.architecture}.{key}": value for key, value in shape.fields.items()}
    fields["general.architecture"] = shape.architecture
    spec = read_spec(fields, shape.tensors, source=name)
    parameters = sum(map(prod, shape.tensors.values()))
    return parameters, spec.active_parameters(parameters)


@pytest.mark.parametrize(
    ("name", "total", "active"), [("olmoe-7b-a1b", 6.9, 1.3), ("lfm2-8b-a1b", 8.3, 1.5)]
)
def test_counts_are_the_published_ones(name, total, active):
    parameters, used = counts(name)
    assert parameters / BILLION == pytest.approx(total, abs=0.06)
    assert used / BILLION == pytest.approx(active, abs=0.06)


def test_biases_of_experts_count():
    parameters, used = counts("gpt-oss-6-layers")
    unused = 6 * (32 - 4) * (3 * 2880 * 2880 + 3 * 2880)
    assert parameters - used == unused


def test_a_model_without_experts_has_no_such_number():
    parameters, used = counts("gemma3-1b")
    assert parameters > 0
    assert used is None
