"""Models whose GGUF files lie in folders of a hub's repository: choice, storage, interrupted downloads."""

import json
import logging
import os
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import huggingface_hub.constants
import huggingface_hub.file_download
import pytest
from typer.testing import CliRunner

from app.commands.models import models_app
from engine.api.errors import FetchError, FetchInterrupted, ModelError
from engine.executors.open_model import open_model
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from engine.models.progress import FetchCancelled
from engine.models.store import RESUMABLE_FOR, ModelStore
from tests.fakes.hub_server import COMMIT, serve_hub
from tests.fakes.tiny_checkpoint import write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf

REPOSITORY = "example/tiny-llama"
PARTS = [f"tiny-Q8_0-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
SPLIT = [f"Q8_0/{name}" for name in PARTS]


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store", check=open_model)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a model in one file."""
    return write_tiny_gguf(tmp_path_factory.mktemp("whole") / "tiny.gguf").read_bytes()


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The bytes of the three parts of a model, by their paths in the repository."""
    folder = tmp_path_factory.mktemp("parts")
    write_tiny_gguf(folder / "tiny-Q8_0.gguf", max_tensors=8)
    return {path: (folder / name).read_bytes() for path, name in zip(SPLIT, PARTS, strict=True)}


@pytest.fixture
def hub(monkeypatch, whole, parts):
    """A repository with one whole model at its top, two in folders, and a split one in a folder."""
    names = ("tiny-Q4_K_M.gguf", "gguf/tiny-Q5_K_M.gguf", "F16/model.gguf")
    with serve_hub(
        REPOSITORY, dict.fromkeys(names, whole) | parts | {"README.md": b"#"}
    ) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setattr(  # huggingface_hub waits a second before each of its five attempts
            huggingface_hub.file_download, "time", SimpleNamespace(sleep=lambda seconds: None)
        )
        yield running


@pytest.mark.parametrize(
    ("choice", "expected", "name"),
    [
        ("Q8_0", PARTS, "tiny-llama-Q8_0"),
        ("q8_0", PARTS, "tiny-llama-q8_0"),
        ("tiny-Q8_0", PARTS, "tiny-llama-tiny-Q8_0"),
        (PARTS[0], PARTS, "tiny-llama-tiny-Q8_0"),
        (PARTS[2], PARTS, "tiny-llama-tiny-Q8_0"),
        (SPLIT[0], PARTS, "tiny-llama-tiny-Q8_0"),
        (SPLIT[1].lower(), PARTS, "tiny-llama-tiny-q8_0"),
        ("Q5_K_M", ["tiny-Q5_K_M.gguf"], "tiny-llama-Q5_K_M"),
        ("tiny-Q5_K_M.gguf", ["tiny-Q5_K_M.gguf"], "tiny-llama-tiny-Q5_K_M"),
        ("gguf/tiny-Q5_K_M.gguf", ["tiny-Q5_K_M.gguf"], "tiny-llama-gguf-tiny-Q5_K_M"),
        ("gguf", ["tiny-Q5_K_M.gguf"], "tiny-llama-gguf"),
        ("F16", ["model.gguf"], "tiny-llama-F16"),
        ("f16/", ["model.gguf"], "tiny-llama-f16"),
        ("Q4_K_M", ["tiny-Q4_K_M.gguf"], "tiny-llama-Q4_K_M"),
    ],
)
def test_models_in_folders_are_chosen_like_those_at_the_top(store, hub, choice, expected, name):
    model = store.add(f"{REPOSITORY}:{choice}")
    assert (model.name, model.revision) == (name, COMMIT)
    assert [file.name for file in model.files] == expected
    assert sorted(path.name for path in model.path.parent.iterdir()) == sorted(expected)
    assert open_model(model.path).paths == tuple(model.path.with_name(name) for name in expected)
    downloads = {path for path in hub.requested if path.endswith(".gguf")}
    assert len(downloads) == len(expected)


@pytest.mark.parametrize("choice", ["", ":Q6_K", ":Q8", ":Q8_0/tiny-Q5_K_M.gguf", ":guf"])
def test_an_ambiguous_choice_lists_each_model_once_with_its_folder(store, hub, choice):
    listed = rf"one of F16/model\.gguf, {SPLIT[0]}, gguf/tiny-Q5_K_M\.gguf, tiny-Q4_K_M\.gguf\.$"
    with pytest.raises(FetchError, match=listed):
        store.add(REPOSITORY + choice)
    assert store.list() == []


def test_long_lists_are_cut(store, hub, whole):
    hub.files = {f"Q{number:02}/tiny.gguf": whole for number in range(40)}
    with pytest.raises(FetchError, match=r"Q29/tiny\.gguf and 10 more\.$"):
        store.add(REPOSITORY)


def test_the_same_file_name_in_two_folders(store, hub, whole, tmp_path):
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1).read_bytes()
    hub.files = {"base/tiny.gguf": whole, "chat/tiny.gguf": other}
    for choice in ("tiny.gguf", "tiny"):
        with pytest.raises(FetchError, match=r"Several .* base/tiny\.gguf, chat/tiny\.gguf\.$"):
            store.add(f"{REPOSITORY}:{choice}")
    base = store.add(f"{REPOSITORY}:base/tiny.gguf")
    chat = store.add(f"{REPOSITORY}:chat/tiny.gguf")
    assert (base.name, chat.name) == ("tiny-llama-base-tiny", "tiny-llama-chat-tiny")
    assert (base.path.read_bytes(), chat.path.read_bytes()) == (whole, other)
    store.remove(base.name)
    assert store.verify(chat.name) == ()


def test_a_file_at_the_top_is_meant_by_its_bare_name(store, hub, whole, tmp_path):
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1).read_bytes()
    hub.files = {"old/tiny.gguf": whole, "tiny.gguf": other}
    assert store.add(f"{REPOSITORY}:tiny.gguf").path.read_bytes() == other


def test_the_tag_of_a_file_comes_before_that_of_a_folder(store, hub, whole):
    hub.files = {"Q4_0/other.gguf": whole, "new/tiny-Q4_0.gguf": whole}
    assert store.add(f"{REPOSITORY}:Q4_0").path.name == "tiny-Q4_0.gguf"


def test_names_that_differ_only_in_case_can_be_chosen(store, hub, whole):
    hub.files = {"q4/tiny.gguf": whole, "Q4/tiny.gguf": whole}
    assert store.add(f"{REPOSITORY}:Q4/tiny.gguf").path.name == "tiny.gguf"
    with pytest.raises(FetchError, match="Several"):
        store.add(f"{REPOSITORY}:Q4")


def test_names_with_spaces_can_be_chosen(store, hub, whole):
    hub.files = {"my models/Tiny (é).gguf": whole, "other.gguf": whole}
    model = store.add(f"{REPOSITORY}:my models/Tiny (é).gguf")
    assert model.path.name == "Tiny (é).gguf"
    assert store.get(model.name).path.read_bytes() == whole


@pytest.mark.parametrize("missing", [0, 2])
def test_a_missing_part_is_named_with_its_folder(store, hub, missing):
    del hub.files[SPLIT[missing]]
    hub.files[PARTS[missing]] = b""  # not in the folder of the others
    with pytest.raises(FetchError, match=f"lacks {SPLIT[missing]}, a part"):
        store.add(f"{REPOSITORY}:{SPLIT[1]}")
    assert store.list() == []


def test_safetensors_at_the_top_come_first_and_those_in_folders_are_not_used(store, hub, tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    hub.files |= {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    assert store.add(REPOSITORY).path.is_dir()
    assert store.add(f"{REPOSITORY}:F16").path.name == "model.gguf"
    hub.files = {f"bf16/{path.name}": path.read_bytes() for path in checkpoint.iterdir()}
    with pytest.raises(
        FetchError, match=r"neither GGUF files nor, outside of folders, safetensors"
    ):
        store.add(REPOSITORY, name="other")


@pytest.mark.parametrize("projector", ["mmproj-F16.gguf", "F16/tiny.mmproj-F16.gguf"])
def test_vision_projectors_are_not_offered(store, hub, projector, whole):
    hub.files[projector] = whole
    assert store.add(f"{REPOSITORY}:F16").path.name == "model.gguf"
    with pytest.raises(FetchError, match="No GGUF file matches") as caught:
        store.add(f"{REPOSITORY}:{projector}")
    assert str(caught.value).count("mmproj") == 1


def test_a_choice_in_a_repository_without_gguf_files_is_refused(store, hub, tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    hub.files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    with pytest.raises(
        FetchError, match=f"no GGUF files, only safetensors: request it as {REPOSITORY}"
    ):
        store.add(f"{REPOSITORY}:Q4_0")


def test_list_show_verify_remove(hub, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))

    def run(*words):
        return CliRunner().invoke(models_app, words)

    assert "mine is ready" in run("add", f"{REPOSITORY}:Q8_0", "--name", "mine").stdout
    (row,) = (line for line in run("list").stdout.splitlines() if line.startswith("mine"))
    assert row.split()[-1].endswith(f"mine/{PARTS[0]}")
    shown = json.loads(run("show", "mine", "--json").stdout)
    assert [file["name"] for file in shown["files"]] == PARTS
    assert shown["source"] == f"{REPOSITORY}:Q8_0"
    assert "every file matches" in run("verify", "mine").stdout
    (tmp_path / "cache" / "models" / "files" / "mine" / PARTS[2]).unlink()
    assert PARTS[2] in run("verify", "mine").stderr
    assert run("remove", "mine").exit_code == 0
    assert list((tmp_path / "cache" / "models" / "files").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../x.gguf", "leaves its folder"),
        ("Q8_0/../../x.gguf", "leaves its folder"),
        ("/etc/x.gguf", "is absolute"),
        ("..\\x.gguf", "has a backslash"),
        ("C:/x.gguf", "has a colon"),
        ("C:x.gguf", "has a colon"),
        ("Q8_0//x.gguf", "empty folder"),
        (".cache/huggingface/x.gguf", "begins with a dot"),
        ("x" * 200 + ".gguf", "longer than 200 bytes"),
        ("é" * 100 + ".gguf", "longer than 200 bytes"),
        ("x/" * 300 + "x.gguf", "longer than 512 bytes"),
        ("Q8_0/\x1b[2Jx.gguf", "cannot be printed"),
        ("Q8_0/\u202ex.gguf", "cannot be printed"),
        ("a\nb.gguf", "cannot be printed"),
        ("a\0b.gguf", "cannot be printed"),
        ("\ud800.gguf", "cannot be printed"),
        ("model-..\\..-of-00001.safetensors", "has a backslash"),
    ],
)
def test_unsafe_paths_in_a_listing_are_refused(store, hub, whole, path, problem):
    """Whichever file is asked for: no other statement of such a hub is trusted either."""
    hub.files[path] = whole
    with pytest.raises(
        FetchError, match=f"lists a file that cannot be stored: .*{problem}"
    ) as caught:
        store.add(f"{REPOSITORY}:Q5_K_M")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250
    assert not any("resolve" in path for path in hub.requested)
    assert store.list() == []


def test_a_commit_that_is_a_path_is_refused(store, hub, monkeypatch):
    monkeypatch.setattr("tests.fakes.hub_server.COMMIT", "../../../outside")
    with pytest.raises(FetchError, match="reports no commit"):
        store.add(f"{REPOSITORY}:Q5_K_M")


def test_a_symbolic_link_of_the_repository_is_no_model(store, hub):
    """A hub sends the target's name as the contents of the file."""
    hub.files["Q8_0/tiny-Q6_K.gguf"] = b"../../../../../../etc/passwd"
    with pytest.raises(ModelError, match="GGUF"):
        store.add(f"{REPOSITORY}:Q6_K")
    assert store.list() == []


def downloads(hub):
    """The files of which contents were requested since the last call, in order, each once."""
    names = [path.rsplit("/", 1)[-1] for path in hub.requested if "/resolve/" in path]
    hub.requested.clear()
    return list(dict.fromkeys(names))


def test_a_download_that_breaks_off_goes_on_from_its_last_byte(store, hub, whole, monkeypatch):
    path = "gguf/tiny-Q5_K_M.gguf"
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 500)
    hub.cut_at[path] = 1000

    def report(event):
        if event.stage == "download" and event.done == 1000:
            hub.cut_at.clear()  # the second attempt gets the rest

    model = store.add(f"{REPOSITORY}:{path}", progress=report)
    assert model.path.read_bytes() == whole
    assert hub.ranges == ["bytes=1000-"]


def test_the_attempts_of_a_download_are_not_printed(store, hub, monkeypatch):
    monkeypatch.delenv("HF_HUB_VERBOSITY", raising=False)
    printed = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", printed.append)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "handlers", [handler])
    hub.cut_at[SPLIT[2]] = 100
    with pytest.raises(FetchInterrupted):
        store.add(f"{REPOSITORY}:Q8_0")
    assert printed == []


def test_an_interrupted_download_continues_with_the_missing_parts(store, hub, parts):
    hub.cut_at[SPLIT[2]] = 100
    with pytest.raises(FetchInterrupted, match=r"; 2 of 3 files arrived, and the same command"):
        store.add(f"{REPOSITORY}:Q8_0")
    assert downloads(hub) == PARTS
    assert store.list() == []
    assert not any((store.root / "files").iterdir())

    hub.cut_at.clear()
    reports = []
    model = store.add(f"{REPOSITORY}:Q8_0", progress=reports.append)
    assert downloads(hub) == PARTS[2:]
    assert [path.read_bytes() for path in sorted(model.path.parent.iterdir())] == list(
        parts.values()
    )
    received = [report for report in reports if report.stage == "download"]
    assert received[-1].done == received[-1].total == sum(map(len, parts.values()))
    assert not any((store.root / "staging").iterdir())


def interrupt_at_part_3(report):
    if report.stage == "download" and report.item == SPLIT[2]:
        raise KeyboardInterrupt


def test_a_download_that_the_user_stopped_continues(store, hub):
    with pytest.raises(KeyboardInterrupt):
        store.add(f"{REPOSITORY}:Q8_0", progress=interrupt_at_part_3)
    downloads(hub)
    assert store.verify(store.add(f"{REPOSITORY}:Q8_0").name) == ()
    assert downloads(hub) == PARTS[2:]


def staged(store):
    return sorted(path.name for path in (store.root / "staging").rglob("*.gguf"))


def test_files_of_another_commit_or_size_are_fetched_again(store, hub, monkeypatch):
    def interrupt():
        with pytest.raises(KeyboardInterrupt):
            store.add(f"{REPOSITORY}:Q8_0", progress=interrupt_at_part_3)
        downloads(hub)

    interrupt()
    (first,) = (store.root / "staging").rglob(PARTS[0])
    first.write_bytes(first.read_bytes()[:-1])
    interrupt()
    (first,) = (store.root / "staging").rglob(PARTS[0])
    first.rename(first.with_name("renamed.gguf"))
    store.add(f"{REPOSITORY}:Q8_0")
    assert downloads(hub) == [PARTS[0], PARTS[2]]


def test_a_link_out_of_the_staging_folder_is_not_followed(store, hub, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        store.add(f"{REPOSITORY}:Q8_0", progress=interrupt_at_part_3)
    (first,) = (store.root / "staging").rglob(PARTS[0])
    outside = first.parent.rename(tmp_path / "outside")
    first.parent.symlink_to(outside)
    store.add(f"{REPOSITORY}:Q8_0")
    assert sorted(path.name for path in outside.iterdir()) == [*PARTS[:2], f"{PARTS[2]}.part"]


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 50)


def test_a_download_that_broke_off_within_a_file_goes_on_where_it_ended(
    store, hub, parts, small_chunks
):
    hub.cut_at[SPLIT[0]] = 100
    with pytest.raises(FetchInterrupted, match="the same command goes on where it ended"):
        store.add(f"{REPOSITORY}:Q8_0")
    hub.cut_at.clear()
    hub.ranges.clear()
    reports = []
    model = store.add(f"{REPOSITORY}:Q8_0", progress=reports.append)
    assert hub.ranges == ["bytes=100-"]
    assert store.verify(model.name) == ()
    received = [report for report in reports if report.stage == "download"]
    assert received[-1].done == received[-1].total == sum(map(len, parts.values()))


def test_a_callback_stops_a_download_which_goes_on_later(store, hub):
    def stop(report):
        if report.stage == "download" and report.item == SPLIT[1]:
            raise FetchCancelled

    with pytest.raises(FetchInterrupted, match="was stopped; started again, it goes on"):
        store.add(f"{REPOSITORY}:Q8_0", progress=stop)
    assert staged(store) == PARTS[:1]
    downloads(hub)
    assert store.verify(store.add(f"{REPOSITORY}:Q8_0").name) == ()
    assert downloads(hub) == PARTS[1:]


def test_a_callback_that_stops_the_last_check_leaves_what_arrived(store, hub):
    def stop(report):
        if report.stage == "verify" and staged(store) == PARTS:
            raise FetchCancelled

    with pytest.raises(FetchInterrupted, match="was stopped; started again, it goes on"):
        store.add(f"{REPOSITORY}:Q8_0", progress=stop)
    assert staged(store) == PARTS
    downloads(hub)
    assert store.verify(store.add(f"{REPOSITORY}:Q8_0").name) == ()
    assert downloads(hub) == []


def test_a_beginning_that_is_not_the_files_is_refused(store, hub, small_chunks):
    hub.cut_at[SPLIT[0]] = 100
    with pytest.raises(FetchInterrupted):
        store.add(f"{REPOSITORY}:Q8_0")
    hub.cut_at.clear()
    (partial,) = (store.root / "staging").rglob("*.part")
    partial.write_bytes(b"x" * 100)
    with pytest.raises(FetchError, match="has SHA-256"):
        store.add(f"{REPOSITORY}:Q8_0")
    assert store.verify(store.add(f"{REPOSITORY}:Q8_0").name) == ()


def test_interrupted_downloads_are_kept_for_a_week(store, hub, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        store.add(f"{REPOSITORY}:Q8_0", progress=interrupt_at_part_3)
    store.add(f"{REPOSITORY}:F16")
    assert staged(store) == PARTS[:2]
    later = datetime.now(UTC) + RESUMABLE_FOR + timedelta(minutes=1)
    ModelStore(store.root, check=open_model, now=lambda: later).add(f"{REPOSITORY}:Q5_K_M")
    assert staged(store) == []


def test_the_week_begins_with_the_latest_attempt(store, hub):
    def interrupt():
        with pytest.raises(KeyboardInterrupt):
            store.add(f"{REPOSITORY}:Q8_0", name="mine", progress=interrupt_at_part_3)

    interrupt()
    long_ago = (datetime.now(UTC) - 2 * RESUMABLE_FOR).timestamp()
    os.utime(store.root / "staging" / "mine" / "hub", (long_ago, long_ago))
    interrupt()
    store.add(f"{REPOSITORY}:F16")
    assert staged(store) == PARTS[:2]


def test_an_interrupted_download_leaves_nothing_in_another_model_of_its_name(store, hub, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        store.add(f"{REPOSITORY}:Q8_0", name="mine", progress=interrupt_at_part_3)
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    names = sorted(path.name for path in checkpoint.iterdir())
    hub.files |= {name: (checkpoint / name).read_bytes() for name in names}
    model = store.add(REPOSITORY, name="mine")
    assert sorted(path.name for path in model.path.iterdir()) == names


def test_a_damaged_download_leaves_nothing(store, hub):
    hub.claimed_sha256[SPLIT[2]] = "0" * 64
    with pytest.raises(FetchError, match=f"{SPLIT[2]} has SHA-256"):
        store.add(f"{REPOSITORY}:Q8_0")
    assert list((store.root / "staging").iterdir()) == []


def test_clear_cache_removes_interrupted_downloads(hub, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    store = ModelStore(check=open_model)
    with pytest.raises(KeyboardInterrupt):
        store.add(f"{REPOSITORY}:Q8_0", progress=interrupt_at_part_3)
    assert staged(store) == PARTS[:2]
    output = CliRunner().invoke(models_app, ["clear-cache"]).stdout
    assert "MB of interrupted downloads are removed." in output
    assert staged(store) == []
    assert "interrupted" not in CliRunner().invoke(models_app, ["clear-cache"]).stdout
