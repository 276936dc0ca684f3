"""Damaged metadata of every family: a description, or an error of one sentence."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import ModelError
from engine.models.families.registry import CLASSES, GGUF_FAMILIES
from engine.models.layer_groups import describe_layers
from engine.models.spec import ModelSpec
from tests.fakes.family_headers import CONFIG, GGUF_KEYS, ROPE, read_config, read_gguf

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.integers(),
    st.floats(),
    st.sampled_from([0.0, 1e-320, 1e308, "linear", "longrope", "proportional", "llama3", "x\ny"]),
    st.text(max_size=8),
)
values = st.one_of(
    scalars,
    st.lists(scalars, max_size=5),
    st.lists(st.integers(-1, 20), min_size=3, max_size=3),
    st.dictionaries(st.sampled_from([*ROPE, "full_attention", "1"]), scalars, max_size=4),
)


def check(spec: ModelSpec) -> None:
    """It can be passed on and shown."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(spec.to_json(), parse_constant=refuse)
    assert describe_layers(spec).startswith(f"{spec.num_layers} layers: ")


def check_or_refuse(read: Callable[[], ModelSpec]) -> None:
    """The description is sound, or the error is one sentence."""
    try:
        spec = read()
    except ModelError as error:
        message = str(error)
    else:
        check(spec)
        return
    assert "\n" not in message
    assert len(message) < 500


@pytest.mark.parametrize("architecture", GGUF_FAMILIES)
def test_a_gguf_file_is_described(architecture: str) -> None:
    check(read_gguf(architecture, {}))


@pytest.mark.parametrize("kind", CLASSES)
def test_a_checkpoint_is_described(kind: str) -> None:
    check(read_config(kind, {}))


@pytest.mark.parametrize("architecture", GGUF_FAMILIES)
@given(changes=st.dictionaries(st.sampled_from(sorted(GGUF_KEYS)), values, max_size=3))
def test_damaged_metadata_of_a_gguf_file(architecture: str, changes: dict[str, object]) -> None:
    check_or_refuse(lambda: read_gguf(architecture, changes))


@pytest.mark.parametrize("kind", CLASSES)
@given(
    changes=st.dictionaries(st.sampled_from(sorted(CONFIG)), values, max_size=3),
    rope=st.dictionaries(st.sampled_from(sorted(ROPE)), values, max_size=2),
)
def test_a_damaged_config(kind: str, changes: dict[str, object], rope: dict[str, object]) -> None:
    check_or_refuse(lambda: read_config(kind, changes, rope))
