from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import ModelError
from engine.models.hub_address import parse_hub_address
from engine.models.hub_id import HubId, parse_hub_id

HUB = "https://huggingface.co/"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://huggingface.co/org/name", HubId("org/name")),
        ("https://huggingface.co/org/name/", HubId("org/name")),
        ("http://www.huggingface.co/org/name", HubId("org/name")),
        (" https://HuggingFace.co/org/name \n", HubId("org/name")),
        ("huggingface.co/org/name", HubId("org/name")),
        ("hf.co/org/name", HubId("org/name")),
        ("https://hf.co/org/name:Q4_K_M", HubId("org/name", "Q4_K_M")),
        ("hf.co/org/name:Q4_K_M", HubId("org/name", "Q4_K_M")),
        (HUB + "org/name?library=gguf#files", HubId("org/name")),
        (HUB + "org/name/tree/main", HubId("org/name")),
        (HUB + "org/name/tree/main/Q4_K_M", HubId("org/name", "Q4_K_M")),
        (HUB + "org/name/tree/v1.0", HubId("org/name", revision="v1.0")),
        (HUB + "org/name/tree/refs%2Fpr%2F1", HubId("org/name", revision="refs/pr/1")),
        (HUB + "org/name/blob/main/m-Q4_K_M.gguf", HubId("org/name", "m-Q4_K_M.gguf")),
        (HUB + "org/name/blob/main/a/m.gguf", HubId("org/name", "a/m.gguf")),
        (HUB + "org/name/blob/abc123/m.GGUF", HubId("org/name", "m.GGUF", "abc123")),
        (HUB + "org/name/resolve/main/m.gguf?download=true", HubId("org/name", "m.gguf")),
        (HUB + "org/name/resolve/main/a%20b.gguf", HubId("org/name", "a b.gguf")),
        (HUB + "org/name/raw/main/m.gguf", HubId("org/name", "m.gguf")),
        (
            HUB + "org/name/blob/main/m-00002-of-00003.gguf",
            HubId("org/name", "m-00001-of-00003.gguf"),
        ),
        (HUB + "org/name?show_file_info=m-Q8_0.gguf", HubId("org/name", "m-Q8_0.gguf")),
        (HUB + "org/name/blob/main/model.safetensors", HubId("org/name")),
        (HUB + "org/name/blob/main/README.md", HubId("org/name")),
        (HUB + "org/name/discussions/3", HubId("org/name")),
        (HUB + "org/name/tree", HubId("org/name")),
        ("hf://org/name", HubId("org/name")),
        ("hf://models/org/name", HubId("org/name")),
        ("hf://org/name/a/m.gguf", HubId("org/name", "a/m.gguf")),
        ("hf://org/name@v2/m.gguf", HubId("org/name", "m.gguf", "v2")),
        ("https://example.org/org/name", None),
        ("https://huggingface.co.evil.example/org/name", None),
        ("https://evil.example/huggingface.co/org/name", None),
        ("org/name", None),
        ("model.gguf", None),
        ("", None),
    ],
)
def test_addresses(text, expected):
    assert parse_hub_address(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HUB, "does not name a model"),
        (HUB + "org", "does not name a model"),
        (HUB + "datasets/org/name", "of a data set, not of a model"),
        (HUB + "spaces/org/name", "of a space, not of a model"),
        (HUB + "org/name/resolve/main/..%2F..%2Fx.gguf", "leaves its folder"),
        (HUB + "org/name/blob/main/a%0Ab.gguf", "cannot be printed"),
        (HUB + "org/name/tree/..%2Fx", "neither a branch, a tag nor a commit"),
        ("hf://org", "does not name a model"),
    ],
)
def test_addresses_of_something_else_are_refused_in_a_sentence(text, words):
    with pytest.raises(ModelError, match=words) as caught:
        parse_hub_address(text)
    assert "\n" not in str(caught.value)


def test_the_host_of_another_endpoint_is_a_hub(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example:8443")
    assert parse_hub_address("https://hub.example:8443/org/name") == HubId("org/name")


@given(st.text(max_size=60))
def test_any_text_is_an_id_or_none_or_refused(rest):
    for start in ("", HUB, HUB + "org/name/", HUB + "org/name/resolve/main/", "hf://", "hf.co/"):
        with suppress(ModelError):
            found = parse_hub_address(start + rest)
            assert found is None or parse_hub_id(str(found)) == found
