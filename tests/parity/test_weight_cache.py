"""Packed weights on disk: the second load uses them, and nothing that is damaged, foreign or half written."""

import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from engine._core import inspect_packed, verify_packed
from tests.parity.cached_loading import answer, load, packed_state
from tests.parity.quantised_models import MEASURED, RANDOM, write_model
from tests.parity.tiny_models import TINY_MODELS, save_tiny_model

QWEN2 = next(tiny for tiny in TINY_MODELS if tiny.name == "qwen2")  # has biases
HEADER = 4096


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "Q4_K")


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "weights"


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def process(*words: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.parity.cached_loading", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("dtype", [*MEASURED, *RANDOM])
def test_the_second_load_maps_what_the_first_one_packed(dtype, tmp_path, folder):
    path = write_model(tmp_path / "tiny.gguf", dtype)
    packed = answer(load(path, None))
    first = load(path, folder)
    assert packed_state(first) == "missing"
    assert answer(first) == packed
    (file,) = files(folder)
    verify_packed(file)
    second = load(path, folder)
    assert packed_state(second) == "mapped"
    assert _mapped_shared(file)
    assert answer(second) == packed
    assert not _mapped_shared(file)


def _mapped_shared(file: Path) -> bool:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return any(line.endswith(str(file)) and " r--s " in line for line in lines)


def test_safetensors_with_biases(tmp_path, folder):
    save_tiny_model(QWEN2, tmp_path, torch.bfloat16)
    packed = answer(load(tmp_path, folder))
    second = load(tmp_path, folder)
    assert packed_state(second) == "mapped"
    assert answer(second) == packed


def test_threads_and_instruction_sets_pack_the_same_bytes(tmp_path, folder):
    """They are not part of the key."""
    for dtype in ("F16", "Q4_0", "Q8_0", "Q4_K", "Q6_K"):
        path = write_model(tmp_path / f"{dtype}.gguf", dtype)
        load(path, tmp_path / "one", threads=1, dispatch="portable").close()
        load(path, tmp_path / "two", threads=2).close()
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert [file.name for file in one] == [file.name for file in two]
    assert len(one) == 5
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_a_changed_model_is_packed_again_and_its_old_weights_are_not_used(tmp_path, folder):
    path = write_model(tmp_path / "tiny.gguf", "Q8_0")
    before = answer(load(path, folder))
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-4096:] = content[-8192:-4096]
    path.write_bytes(content)  # in place: the same inode and size
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = load(path, folder)
    assert packed_state(changed) == "missing"
    assert answer(changed) != before
    assert answer(load(path, None)) == answer(load(path, folder))


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[30] ^= 1
    file.write_bytes(content)


def replace(file: Path) -> None:
    file.write_bytes(b"GGUF" + bytes(file.stat().st_size - 4))


def open_to_others(file: Path) -> None:
    file.chmod(0o666)


@pytest.mark.parametrize("change", [truncate, damage, replace, open_to_others])
def test_an_unusable_file_is_replaced_with_one_line_in_the_log(change, model, folder, caplog):
    expected = answer(load(model, folder))
    (file,) = files(folder)
    change(file)
    caplog.clear()
    again = load(model, folder)
    assert packed_state(again) == "unusable"
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert "packed again" in record.getMessage()
    assert answer(again) == expected
    assert files(folder) == [file]
    verify_packed(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert packed_state(load(model, folder)) == "mapped"


def test_the_file_of_another_model_under_this_ones_name_is_not_used(model, tmp_path, folder):
    load(model, folder).close()
    (file,) = files(folder)
    load(write_model(tmp_path / "other.gguf", "Q4_K"), tmp_path / "others").close()
    (other,) = files(tmp_path / "others")
    other.replace(file)
    again = load(model, folder)
    assert packed_state(again) == "unusable"
    assert "other weights" in again._core.info["packed_reason"]
    again.close()
    assert inspect_packed(file)["source"] == str(model)  # replaced


def test_processes_that_pack_at_once_leave_one_whole_file(model, folder):
    running = [process(model, folder) for _ in range(3)]
    outputs = [started.communicate(timeout=300)[0].strip() for started in running]
    assert all(started.returncode == 0 for started in running)
    assert set(outputs) <= {"missing", "mapped"}
    (file,) = files(folder)
    verify_packed(file)
    assert packed_state(load(model, folder)) == "mapped"


def test_a_process_killed_while_writing_leaves_nothing_that_is_used(model, folder):
    killed = process(model, folder, 100_000)
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGXFSZ
    (unfinished,) = files(folder)
    assert unfinished.name.endswith(".packed.part")
    assert unfinished.stat().st_size == 100_000
    again = load(model, folder)
    assert packed_state(again) == "missing"
    again.close()
    (file,) = files(folder)  # the unfinished one is gone
    verify_packed(file)


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Files of this process cannot grow beyond `size`: an error like that of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_one_line_in_the_log(model, folder, caplog):
    expected = answer(load(model, None))
    with files_limited_to(100_000):
        loaded = load(model, folder)
    assert answer(loaded) == expected
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert "could not be kept" in record.getMessage()
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_is_one_line_in_the_log(model, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    loaded = load(model, tmp_path / "file" / "weights")
    assert answer(loaded) == answer(load(model, None))
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert "could not be kept" in record.getMessage()


def test_closing_a_model_gives_up_a_save_that_takes_too_long(model, folder):
    loaded = load(model, folder, saved=False)
    assert loaded._saver is not None
    loaded._saver.close(wait_s=0)  # saved already, or cancelled
    loaded.close()
    loaded._saver.close()
    for file in files(folder):
        verify_packed(file)
