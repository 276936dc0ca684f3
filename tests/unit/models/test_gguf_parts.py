"""Models split into several GGUF files: their names, the store's records of them, and what is refused."""

import json

import pytest
from typer.testing import CliRunner

from app.commands.models import models_app
from engine.api.errors import FetchError, ModelError
from engine.executors.open_model import open_model
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from engine.models.gguf_parts import model_stem, part_names, part_paths
from engine.models.store import ModelStore
from tests.fakes.hub_server import serve_hub
from tests.fakes.tiny_gguf import write_tiny_gguf

REPOSITORY = "example/tiny-llama"
PARTS = [f"tiny-0000{number}-of-00003.gguf" for number in (1, 2, 3)]


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store", check=open_model)


@pytest.fixture
def folder(tmp_path):
    """A folder with the three parts of a model of 20 tensors."""
    folder = tmp_path / "parts"
    folder.mkdir()
    first = write_tiny_gguf(folder / "tiny.gguf", max_tensors=8)
    assert sorted(path.name for path in folder.iterdir()) == PARTS
    assert first == folder / PARTS[0]
    return folder


def test_parts_are_found_by_their_names():
    assert part_names("m-00002-of-00003.gguf") == (
        "m-00001-of-00003.gguf",
        "m-00002-of-00003.gguf",
        "m-00003-of-00003.gguf",
    )
    for whole in ["m.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m-1-of-3.gguf"]:
        assert part_names(whole) == (whole,)
    assert model_stem("m-00002-of-00003.gguf") == "m"
    assert model_stem("m-00001-of-00003.GGUF") == "m"
    assert model_stem("m.v2.gguf") == "m.v2"


def test_a_whole_model_may_be_named_like_a_part(tmp_path):
    path = write_tiny_gguf(tmp_path / PARTS[1])
    assert part_paths(path) == (path,)
    assert open_model(path).paths == (path,)


@pytest.mark.parametrize("part", PARTS)
def test_any_part_stands_for_the_model(store, folder, part):
    model = store.add(str(folder / part))
    assert (model.name, model.path) == ("tiny", folder / PARTS[0])
    assert [file.name for file in model.files] == PARTS
    assert model.size == sum(path.stat().st_size for path in folder.iterdir())
    assert store.get(str(folder / part)).path == folder / PARTS[0]
    assert store.add(str(folder / PARTS[0])) == model


def test_a_split_model_has_the_facts_of_the_whole_one(folder, tmp_path):
    fields = {"general.sampling.temp": 0.5}
    write_tiny_gguf(folder / "tiny.gguf", max_tensors=8, fields=fields)
    split = open_model(folder / PARTS[1])
    whole = open_model(write_tiny_gguf(tmp_path / "tiny.gguf", fields=fields))
    assert split.paths == tuple(folder / name for name in PARTS)
    assert (split.name, split.spec, split.parameters) == (whole.name, whole.spec, whole.parameters)
    assert split.tokenizer.fingerprint == whole.tokenizer.fingerprint
    assert split.file_bytes == sum(path.stat().st_size for path in split.paths)
    assert split.generation_defaults.values() == {"temperature": 0.5}
    assert whole.generation_defaults.values() == {"temperature": 0.5}


def test_a_part_that_is_a_symbolic_link_keeps_its_name(store, folder, tmp_path):
    """As in the cache of huggingface_hub, where links point to files named by their digests."""
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        blob = path.rename(folder / str(number))
        (snapshot / path.name).symlink_to(blob)
    model = store.add(str(snapshot / PARTS[0]))
    assert open_model(model.path).paths == tuple(snapshot / name for name in PARTS)


def test_a_changed_or_missing_part_is_found_by_verify(store, folder):
    store.add(str(folder / PARTS[0]))
    assert store.verify("tiny") == ()
    last = folder / PARTS[2]
    last.write_bytes(last.read_bytes()[:-1] + b"\x55")
    (problem,) = store.verify("tiny")
    assert PARTS[2] in problem
    last.unlink()
    (problem,) = store.verify("tiny")
    assert PARTS[2] in problem


@pytest.mark.parametrize("part", PARTS[1:])
def test_a_missing_part_is_named(store, folder, part):
    (folder / part).unlink()
    for refused in (store.add, open_model):
        with pytest.raises(ModelError, match=f"{part} is missing, part . of 3") as caught:
            refused(str(folder / PARTS[0]) if refused == store.add else folder / PARTS[0])
        assert "\n" not in str(caught.value)
    assert store.list() == []


def test_a_part_of_another_model_is_refused(folder, tmp_path):
    write_tiny_gguf(tmp_path / "other.gguf", architecture="qwen3", max_tensors=8)
    (tmp_path / "other-00002-of-00003.gguf").replace(folder / PARTS[1])
    with pytest.raises(ModelError, match=r"another model|an earlier part"):
        open_model(folder / PARTS[0])


def test_a_part_under_another_name_is_refused(folder):
    renamed = (folder / PARTS[0]).rename(folder / "tiny.gguf")
    with pytest.raises(ModelError, match="part 1 of 3 of a model whose other parts were not given"):
        open_model(renamed)


def test_linked_parts_are_kept_and_fetched_ones_deleted(store, folder, monkeypatch):
    store.add(str(folder / PARTS[0]))
    store.remove("tiny")
    assert sorted(path.name for path in folder.iterdir()) == PARTS
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with serve_hub(REPOSITORY, files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        fetched = store.add(REPOSITORY)
    home = fetched.path.parent
    assert home.is_relative_to(store.root)
    assert sorted(path.name for path in home.iterdir()) == PARTS
    assert store.verify(fetched.name) == ()
    store.remove(fetched.name)
    assert not home.exists()


@pytest.mark.parametrize("choice", ["Q4_0", "big-Q4_0-00001-of-00003.gguf", PARTS[1]])
def test_all_parts_are_fetched_from_a_hub(store, folder, monkeypatch, choice):
    """`PARTS[1]`: a later part, in a repository with another split model."""
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    renamed = {name.replace("tiny", "big-Q4_0"): content for name, content in data.items()}
    with serve_hub(REPOSITORY, data | renamed | {"README.md": b"#"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(FetchError, match=f"big-Q4_0-00001-of-00003.gguf, {PARTS[0]}"):
            store.add(REPOSITORY)
        model = store.add(f"{REPOSITORY}:{choice}")
    stem = "tiny" if choice == PARTS[1] else "big-Q4_0"
    assert model.name == (f"tiny-llama-{stem}" if choice != "Q4_0" else "tiny-llama-Q4_0")
    assert [file.name for file in model.files] == [n.replace("tiny", stem) for n in PARTS]
    assert len(open_model(model.path).paths) == 3


def test_a_hub_that_lacks_a_part_is_refused(store, folder, monkeypatch):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    del files[PARTS[2]]
    with serve_hub(REPOSITORY, files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(FetchError, match=f"lacks {PARTS[2]}"):
            store.add(f"{REPOSITORY}:{PARTS[0]}")
    assert store.list() == []


def test_models_show_lists_every_part(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    run = CliRunner().invoke
    assert "tiny is ready" in run(models_app, ["add", str(folder / PARTS[1])]).stdout
    shown = json.loads(run(models_app, ["show", "tiny", "--json"]).stdout)
    assert [file["name"] for file in shown["files"]] == PARTS
    assert shown["file_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    assert shown["weight_bytes"] > 0
