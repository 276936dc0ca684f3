"""A model's digest depends on the contents of its files alone."""

import os

import pytest

from engine.models.content_digest import content_digest


def test_equal_files_have_equal_digests_wherever_they_are(tmp_path):
    data = os.urandom(3_000_000)
    digests = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / f"{name}.gguf"
        path.write_bytes(data)
        os.utime(path, (1, 1) if name == "here" else (2, 2))
        digests.append(content_digest([path]))
    assert digests[0] == digests[1]
    assert len(digests[0]) == 24


@pytest.mark.parametrize("change", ["longer", "first", "middle", "last"])
def test_other_contents_have_another_digest(tmp_path, change):
    data = bytearray(3_000_000)
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    before = content_digest([path])
    if change == "longer":
        data += b"\0"
    else:  # another training changes every tensor, so any window of some 60 kB
        begin = {"first": 0, "middle": 1_500_000, "last": len(data) - 60_000}[change]
        data[begin : begin + 60_000] = b"\1" * 60_000
    path.write_bytes(data)
    assert content_digest([path]) != before


def test_the_order_of_parts_does_not_matter(tmp_path):
    parts = [tmp_path / f"model-{n}.gguf" for n in (1, 2)]
    for number, part in enumerate(parts):
        part.write_bytes(bytes([number]) * 100)
    assert content_digest(parts) == content_digest(parts[::-1])


def test_small_and_empty_files_have_a_digest_and_no_files_none(tmp_path):
    path = tmp_path / "empty.gguf"
    path.write_bytes(b"")
    assert content_digest([path])
    assert content_digest([]) == ""
