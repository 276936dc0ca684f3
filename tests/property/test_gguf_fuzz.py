"""Damaged and hostile GGUF headers are read or refused with one sentence.

No header crashes the process or makes it allocate more than the file's size justifies.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine._core import GgufFile

SPARE_BYTES = 64 << 20
"""Address space a process may add while it opens hostile files of a few hundred bytes."""

EDGES = [0, 1, 31, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "valid.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["<s>", "a", "ü"])
    writer.add_token_scores([0.0, -1.0, -2.0])
    writer.add_bool("flag", True)
    writer.add_array("flags", [True, False])
    rng = np.random.default_rng(0)
    writer.add_tensor("norm.weight", rng.standard_normal(32).astype(np.float32))
    weights = rng.standard_normal((2, 64)).astype(np.float32)
    kind = gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor("w.weight", gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def read_everything(path: Path) -> str | None:
    """Read all metadata and tensors of a file; the error message if it is refused."""
    try:
        file = GgufFile(path)
    except ValueError as error:
        return str(error)
    assert isinstance(file.metadata, dict)
    for tensor in file.tensors:
        assert tensor.offset + tensor.nbytes <= path.stat().st_size
        assert file.dequantize(tensor.name).shape == tensor.shape
    return None


def assert_one_sentence(message: str, path: Path) -> None:
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert len(message) < len(str(path)) + 400


def overwrite(data: bytes, at: int, patch: bytes) -> bytes:
    at %= len(data)
    return data[:at] + patch[: len(data) - at] + data[at + len(patch) :]


@st.composite
def damage(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from(["bit", "u32", "u64", "cut", "repeat", "bad utf-8"])
    change = st.tuples(kinds, st.integers(0, 2**16), st.sampled_from(EDGES))
    return draw(st.lists(change, min_size=1, max_size=4))


def apply(data: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    for kind, at, value in changes:
        if not data:
            break
        match kind:
            case "bit":
                data = overwrite(data, at, bytes([data[at % len(data)] ^ (1 << value % 8)]))
            case "u32":
                data = overwrite(data, at, struct.pack("<I", value & 0xFFFFFFFF))
            case "u64":
                data = overwrite(data, at, struct.pack("<Q", value))
            case "cut":
                data = data[: at % len(data)]
            case "repeat":
                start = at % len(data)
                data = data[:start] + data[start : start + 40] + data[start:]
            case "bad utf-8":
                data = overwrite(data, at, b"\xc3\x28")
    return data


def test_the_intact_file_is_read(valid: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(valid)
    assert read_everything(path) is None
    metadata = GgufFile(path).metadata
    assert metadata["tokenizer.ggml.tokens"] == ["<s>", "a", "ü"]
    assert metadata["llama.block_count"] == 1
    assert metadata["flags"] == [True, False]


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=damage())
def test_a_damaged_file_is_read_or_refused_with_one_sentence(
    valid: bytes, tmp_path: Path, changes: list[tuple[str, int, int]]
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(apply(valid, changes))
    message = read_everything(path)
    if message is not None:
        assert_one_sentence(message, path)


def split_parts(folder: Path) -> list[Path]:
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama", split_max_tensors=2)
    writer.add_name("tiny")
    for name in "abcde":
        writer.add_tensor(name, np.arange(64, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def valid_parts(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return [path.read_bytes() for path in split_parts(tmp_path_factory.mktemp("split"))]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=damage(), at=st.integers(0, 2), order=st.permutations(range(3)))
def test_damaged_or_exchanged_parts_are_read_or_refused_with_one_sentence(
    valid_parts: list[bytes],
    tmp_path: Path,
    changes: list[tuple[str, int, int]],
    at: int,
    order: list[int],
) -> None:
    paths = [tmp_path / f"{number}.gguf" for number in range(3)]
    for number, path in enumerate(paths):
        data = valid_parts[order[number]]
        path.write_bytes(apply(data, changes) if number == at else data)
    try:
        file = GgufFile(paths)
    except ValueError as error:
        (named,) = [path for path in paths if str(error).startswith(f"{path}: ")]
        assert_one_sentence(str(error), named)
        return
    names = [tensor.name for tensor in file.tensors]
    assert len(set(names)) == len(names) == 5
    assert all(file.dequantize(name).size > 0 for name in names)


def test_intact_parts_are_read_in_order_only(tmp_path: Path) -> None:
    paths = split_parts(tmp_path)
    file = GgufFile(paths)
    assert [tensor.name for tensor in file.tensors] == list("abcde")
    assert file.metadata["general.name"] == "tiny"
    assert [GgufFile.split_of(path) for path in paths] == [(1, 3), (2, 3), (3, 3)]
    for wrong in [paths[:2], paths[::-1], [paths[0], paths[1], paths[1]], [paths[1]], []]:
        with pytest.raises(ValueError):
            GgufFile(wrong)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def header(*, tensors: int = 0, entries: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, extents: list[int], kind: int = 0, offset: int = 0) -> bytes:
    dims = struct.pack(f"<I{len(extents)}Q", len(extents), *extents)
    return text(name) + dims + struct.pack("<IQ", kind, offset)


def hostile_files() -> Iterator[tuple[str, bytes]]:
    padding = bytes(256)
    for edge in EDGES[4:]:
        count = edge & (2**64 - 1)
        yield f"{edge} tensors", header(tensors=count) + padding
        yield f"{edge} entries", header(entries=count) + padding
        for kind in range(13):
            array = struct.pack("<IQ", kind, count)
            yield f"{edge} of kind {kind}", header(entries=1) + entry(b"k", 9, array) + padding
        string = entry(b"k", 8, struct.pack("<Q", count))
        yield f"string of {edge}", header(entries=1) + string + padding
        yield f"key of {edge}", header(entries=1) + struct.pack("<Q", count) + padding
        yield f"name of {edge}", header(tensors=1) + struct.pack("<Q", count) + padding
        yield f"width {edge}", header(tensors=1) + tensor(b"w", [count]) + padding
        square = tensor(b"w", [count, count, count, count])
        yield f"square of {edge}", header(tensors=1) + square + padding
        yield f"offset {edge}", header(tensors=1) + tensor(b"w", [8], offset=count) + padding
        yield f"{edge} dims", header(tensors=1) + text(b"w") + struct.pack("<Q", edge) + padding
    depth = struct.pack("<IQ", 9, 1) * 10_000
    yield "arrays in arrays", header(entries=1) + entry(b"k", 9, depth)
    twins = tensor(b"a", [8]) + tensor(b"b", [8], offset=0)
    yield "overlap", header(tensors=2) + twins + padding
    yield "twins", header(tensors=2) + tensor(b"a", [8]) + tensor(b"a", [8], offset=32) + padding
    yield "bad utf-8", header(entries=1) + entry(b"k", 8, text(b"\xc3\x28")) + padding
    yield "bad key", header(entries=1) + entry(b"\xff\xfe", 8, text(b"v")) + padding
    yield "version 1", header(version=1) + padding
    yield "big-endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + padding
    yield "empty", b""


OPEN_UNDER_LIMIT = """
import json, resource, sys
from pathlib import Path
from engine._core import GgufFile

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
outcome = {}
for path in sys.argv[2:]:
    try:
        GgufFile(path).metadata
        outcome[path] = None
    except ValueError as error:
        outcome[path] = str(error)
print(json.dumps(outcome))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits address space through /proc")
def test_hostile_headers_are_refused_within_a_bound_on_memory(tmp_path: Path) -> None:
    names = {}
    for at, (name, data) in enumerate(hostile_files()):
        path = tmp_path / f"{at}.gguf"
        path.write_bytes(data)
        names[str(path)] = name
    script = [sys.executable, "-c", OPEN_UNDER_LIMIT, str(SPARE_BYTES), *names]
    child = subprocess.run(script, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    outcome = json.loads(child.stdout)
    assert [names[path] for path, message in outcome.items() if message is None] == []
    for path, message in outcome.items():
        assert_one_sentence(message, Path(path))


def test_the_memory_limit_catches_an_allocation(tmp_path: Path) -> None:
    """Guards the test above: the limited process cannot allocate what a header may claim."""
    greedy = OPEN_UNDER_LIMIT.replace("GgufFile(path).metadata", "bytearray(1 << 28)")
    script = [sys.executable, "-c", greedy, str(SPARE_BYTES), "any"]
    child = subprocess.run(script, capture_output=True, text=True, check=False)
    assert "MemoryError" in child.stderr


def test_paths_that_are_no_regular_file_are_refused_with_one_sentence(tmp_path: Path) -> None:
    for path in [tmp_path, tmp_path / "absent.gguf", Path("/dev/null")]:
        message = read_everything(path)
        assert message is not None
        assert_one_sentence(message, path)
