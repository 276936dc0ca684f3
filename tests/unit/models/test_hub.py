import json

import pytest

from engine.api.errors import FetchError, ModelError
from engine.executors.open_model import open_model
from engine.models.hub_id import HubId, parse_hub_id
from engine.models.store import ModelStore
from tests.fakes.hub_server import COMMIT, serve_hub
from tests.fakes.tiny_checkpoint import tiny_config, write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf

REPOSITORY = "example/tiny-llama"


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store", check=open_model)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    directory = write_checkpoint(tmp_path / "source")
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    with serve_hub(REPOSITORY, files) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def gguf_hub(monkeypatch, tmp_path):
    names = ("tiny-Q4_K_M.gguf", "tiny-Q4_K_S.gguf", "tiny-f16.gguf")
    data = write_tiny_gguf(tmp_path / "one.gguf").read_bytes()
    with serve_hub(REPOSITORY, dict.fromkeys(names, data) | {"README.md": b"#"}) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def test_a_directory_is_fetched_at_one_commit(store, hub):
    hub.files |= {
        "pytorch_model.bin": b"\x80\x04.",
        "modeling_evil.py": b"1/0",
        "x/config.json": b"{}",
    }
    reports = []
    model = store.add(REPOSITORY, progress=reports.append)
    assert (model.name, model.origin, model.revision) == ("tiny-llama", "hub", COMMIT)
    assert model.path.is_relative_to(store.root)
    assert {path.name for path in model.path.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert store.verify("tiny-llama") == ()
    downloads = [report for report in reports if report.stage == "download"]
    assert downloads[-1].done == downloads[-1].total > 0
    assert not any(".bin" in path or ".py" in path for path in hub.requested)
    assert store.add(REPOSITORY) == model


@pytest.mark.parametrize("choice", ["Q4_K_M", "q4_k_m", "tiny-Q4_K_M.gguf"])
def test_one_gguf_file_is_chosen(store, gguf_hub, choice):
    model = store.add(f"{REPOSITORY}:{choice}", name="chosen")
    assert model.path.name == "tiny-Q4_K_M.gguf"
    assert [file.name for file in model.files] == ["tiny-Q4_K_M.gguf"]


@pytest.mark.parametrize("choice", ["", ":Q8_0", ":Q4_K", ":gguf"])
def test_an_ambiguous_choice_lists_the_files(store, gguf_hub, choice):
    with pytest.raises(FetchError, match=r"tiny-Q4_K_M\.gguf, tiny-Q4_K_S\.gguf"):
        store.add(REPOSITORY + choice)
    assert store.list() == []


def test_a_digest_that_does_not_match_is_refused(store, hub):
    hub.claimed_sha256["model.safetensors"] = "0" * 64
    with pytest.raises(FetchError, match=r"model\.safetensors has SHA-256"):
        store.add(REPOSITORY)
    assert store.list() == []
    assert not list((store.root / "staging").iterdir())


def test_a_model_that_cannot_be_opened_is_not_installed(store, hub):
    hub.files["config.json"] = json.dumps(tiny_config(auto_map={"AutoModel": "x.Y"})).encode()
    with pytest.raises(ModelError, match="auto_map"):
        store.add(REPOSITORY)
    assert store.list() == []
    assert not list((store.root / "files").iterdir())


def test_the_chat_template_for_tools_is_fetched_from_its_folder(store, hub):
    hub.files["additional_chat_templates/tool_use.jinja"] = b"{{ tools }}"
    hub.files["additional_chat_templates/other.jinja"] = b"{{ messages }}"
    model = store.add(REPOSITORY)
    assert (model.path / "additional_chat_templates/tool_use.jinja").read_bytes() == b"{{ tools }}"
    assert not (model.path / "additional_chat_templates/other.jinja").exists()
    assert store.verify(model.name) == ()


def test_a_repository_without_weights_is_refused(store, hub):
    del hub.files["model.safetensors"]
    with pytest.raises(FetchError, match="neither GGUF files nor, outside of folders, safetensors"):
        store.add(REPOSITORY)


def test_an_unknown_repository_is_an_error_in_one_sentence(store, hub):
    with pytest.raises(FetchError, match="no model example/nothing") as caught:
        store.add("example/nothing")
    assert "\n" not in str(caught.value)


def test_no_network_is_an_error_in_one_sentence(store, monkeypatch):
    with serve_hub(REPOSITORY, {}) as closed:
        url = closed.url
    monkeypatch.setenv("HF_ENDPOINT", url)
    with pytest.raises(FetchError, match="could not be fetched") as caught:
        store.add(REPOSITORY)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", HubId("org/name")),
        ("org/name:Q4_K_M", HubId("org/name", "Q4_K_M")),
        ("org/name.v1:a-b.gguf", HubId("org/name.v1", "a-b.gguf")),
        ("org/name:a b/c.gguf", HubId("org/name", "a b/c.gguf")),
        ("org/name:a/c-00002-of-00002.gguf", HubId("org/name", "a/c-00001-of-00002.gguf")),
        ("org/name:Q4_K_M/", HubId("org/name", "Q4_K_M")),
        ("name", None),
        ("a/b/c", None),
        ("../x", None),
        ("org/..", None),
        ("https://example.org/x", None),
    ],
)
def test_ids(text, expected):
    assert parse_hub_id(text) == expected


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("../x", "leaves its folder"),
        ("a/../../x", "leaves its folder"),
        ("/etc/passwd", "is absolute"),
        ("a\\b", "has a backslash"),
        ("a:b", "has a colon"),
        ("a\nb", "has characters that cannot be printed"),
    ],
)
def test_a_choice_that_no_file_can_have_is_refused(store, choice, problem):
    with pytest.raises(ModelError, match=f"cannot be a file of org/name: it {problem}") as caught:
        store.add(f"org/name:{choice}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("org/name:", "No file follows the colon"),
        ("https://example.org/org/name", "is no link to a GGUF file: give"),
        ("", "is neither a file"),
        ("org/name/Q4_K_M", "nor a Hugging Face id"),
    ],
)
def test_sources_that_are_not_ids_are_refused_with_the_reason(store, hub, source, words):
    with pytest.raises(ModelError, match=words):
        store.add(source)
    assert hub.requested == []


@pytest.mark.parametrize(
    "address",
    [
        "blob/main/tiny-Q4_K_M.gguf",
        "resolve/main/tiny-Q4_K_M.gguf?download=true",
        "?show_file_info=tiny-Q4_K_M.gguf",
    ],
)
def test_an_address_of_the_hub_is_added_like_its_id(store, gguf_hub, address):
    model = store.add(f"{gguf_hub.url}/{REPOSITORY}/{address}")
    assert (model.origin, model.source) == ("hub", f"{REPOSITORY}:tiny-Q4_K_M.gguf")
    assert store.add(f"{REPOSITORY}:tiny-Q4_K_M.gguf", name=model.name) == model


def test_a_revision_is_asked_for(store, hub):
    hub.revisions["v1"] = COMMIT
    model = store.add(f"{hub.url}/{REPOSITORY}/tree/v1")
    assert (model.source, model.revision) == (f"{REPOSITORY}@v1", COMMIT)
    assert f"/api/models/{REPOSITORY}/revision/v1" in hub.requested
    with pytest.raises(FetchError, match="has no branch, tag or commit v2"):
        store.add(f"{REPOSITORY}@v2", name="other")


def test_a_mistyped_path_is_told_to_be_no_file(store, hub):
    with pytest.raises(FetchError, match=r"no model folder/x\.gguf, .* no such file here, either"):
        store.add("folder/x.gguf")


def test_a_directory_of_gguf_files_is_refused_with_the_file_to_give(store, tmp_path):
    path = write_tiny_gguf(tmp_path / "b.gguf")
    path.with_name("c.gguf").touch()
    with pytest.raises(
        ModelError, match=f"to use one of its GGUF files, give the file, as in {path}"
    ):
        store.add(str(tmp_path))
