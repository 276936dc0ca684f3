"""Generated schemas: every completed output validates, for random tokens under the masks."""

import json

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.api.grammar import Grammar
from tests.structured.formats import CHECKS, validate
from tests.structured.schemas import documents

DEFAULT_SCHEMAS = 150
SOAK_SCHEMAS = 1000


def check(writer, count, *, derandomize):
    """Write under `count` schemas; the share that was refused, and that was completed."""
    refused = cut = complete = 0

    @settings(
        max_examples=count,
        derandomize=derandomize,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(schema=documents(), seed=st.integers(0, 2**32 - 1))
    def every_completed_output_validates(schema, seed):
        nonlocal refused, cut, complete
        answer = writer.write(Grammar.json_schema(schema), np.random.default_rng(seed))
        if answer is None:
            refused += 1
            return
        text, finished = answer
        if not finished:
            cut += 1
            return
        complete += 1
        validate(json.loads(text), schema)

    every_completed_output_validates()
    print(f"{count} schemas: {complete} complete, {cut} cut at the token limit, {refused} refused")
    return refused, cut, complete


def test_every_completed_output_validates(writer):
    refused, cut, complete = check(writer, DEFAULT_SCHEMAS, derandomize=True)
    assert complete > 0.7 * (refused + cut + complete)


NOT_OF_THE_FORMAT = {
    "date": "2023-02-29",
    "time": "24:00:00Z",
    "date-time": "2023-01-01 00:00:00Z",
    "duration": "P1Y1W",
    "email": "a b@c",
    "hostname": "-a.b",
    "ipv4": "1.2.3.256",
    "ipv6": "1::2::3",
    "uuid": "123e4567e89b12d3a456426614174000",
    "uri": "//host/path",
}


@pytest.mark.parametrize("name", CHECKS)
def test_every_text_of_a_format_has_it(writer, name):
    schema = {"type": "string", "format": name}
    with pytest.raises(jsonschema.ValidationError):
        validate(NOT_OF_THE_FORMAT[name], schema)  # the check asserts something
    texts = []
    for seed in range(20):
        text, finished = writer.write(Grammar.json_schema(schema), np.random.default_rng(seed))
        if finished:
            texts.append(json.loads(text))
            validate(texts[-1], schema)
    assert len(set(texts)) >= 15


@pytest.mark.soak
def test_every_completed_output_of_a_thousand_schemas_validates(writer):
    refused, cut, complete = check(writer, SOAK_SCHEMAS, derandomize=False)
    assert complete > 0.7 * (refused + cut + complete)
