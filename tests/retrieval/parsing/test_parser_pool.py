import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.parser_limits import ParserLimits
from engine.retrieval.parsing.parser_pool import ParserPool

from . import samples

_PAGE = b"<html><p>hello</p></html>"


@pytest.fixture
def own_pool() -> Iterator[ParserPool]:
    pool = ParserPool()
    yield pool
    pool.close()


def _children() -> set[int]:
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found |= set(map(int, Path(f"/proc/self/task/{task}/children").read_text().split()))
        except OSError:
            continue
    return found


class TestWhatIsNoFile:
    def test_each_kind_has_its_sentence(self, pool: ParserPool, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "socket"))
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        for path, reason in (
            (tmp_path, "a folder"),
            (tmp_path / "pipe", "a named pipe"),
            (tmp_path / "socket", "a socket"),
            (Path("/dev/zero"), "a device"),
            (tmp_path / "missing", "No such file"),
            (tmp_path / "loop", "symbolic link"),
            (tmp_path / "a\0b", "cannot be read"),
        ):
            with pytest.raises(Unreadable, match=reason):
                pool.parse(path)
        bound.close()

    def test_a_file_that_is_too_long_is_not_read(self, pool: ParserPool, tmp_path: Path) -> None:
        path = tmp_path / "big.txt"
        with path.open("wb") as file:
            file.truncate(1 << 30)
        with pytest.raises(Unreadable, match=r"1,073,741,824 bytes; files up to 67,108,864"):
            pool.parse(path)

    def test_an_empty_file(self, pool: ParserPool) -> None:
        for data in (b"", b" \n", b"\xef\xbb\xbf \n"):
            with pytest.raises(Unreadable, match="empty"):
                pool.parse_bytes("a.txt", data)


class TestHostileFiles:
    def test_a_zip_bomb(self) -> None:
        bomb = samples.docx("", **{"word/footnotes.xml": "<a>" + " " * (20 << 20)})
        assert len(bomb) < 1 << 16
        pool = ParserPool(limits=ParserLimits(text_bytes=1 << 20))
        with pytest.raises(Unreadable, match="unpacks to more than 8,388,608 bytes"):
            pool.parse_bytes("a.docx", bomb)
        pool.close()

    def test_a_gzip_bomb(self) -> None:
        pool = ParserPool(limits=ParserLimits(text_bytes=1 << 20))
        with pytest.raises(Unreadable, match="characters of text"):
            pool.parse_bytes("a.gz", gzip.compress(b"a" * (20 << 20), 1))
        pool.close()

    def test_entities_are_not_expanded(self, pool: ParserPool) -> None:
        xml = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><d>&b;</d>'
        with pytest.raises(Unreadable, match="declares entities"):
            pool.parse_bytes("a.odt", samples.zipped({"mimetype": "x", "content.xml": xml}))

    def test_deep_nesting(self, pool: ParserPool) -> None:
        deep = 50_000
        for name, data in (
            ("a.json", b"[" * deep),
            ("a.py", b"(" * deep + b")" * deep),
            ("a.html", b"<div>" * 2_000 + b"x"),
            ("a.js", b"{" * deep),
        ):
            assert pool.parse_bytes(name, data).text
        xml = "<a>" * deep + "</a>" * deep
        with pytest.raises(Unreadable, match="no text"):
            pool.parse_bytes("a.odt", samples.zipped({"mimetype": "x", "content.xml": xml}))

    def test_too_much_memory(self) -> None:
        pool = ParserPool(limits=ParserLimits(memory_bytes=400 << 20, text_bytes=100 << 20))
        bomb = gzip.compress(b"a" * (200 << 20), 1)
        with pytest.raises(Unreadable, match="memory"):
            pool.parse_bytes("a.gz", bomb)
        assert pool.parse_bytes("a.html", _PAGE).text.strip() == "hello"
        pool.close()

    def test_too_much_processor_time(self) -> None:
        pool = ParserPool(limits=ParserLimits(cpu_s=0))
        page = b"<html>" + b"<p>word</p>" * 2_500_000
        try:
            with pytest.raises(Unreadable, match="processor time"):
                pool.parse_bytes("a.html", page)
        finally:
            pool.close()

    def test_too_much_time(self) -> None:
        pool = ParserPool(limits=ParserLimits(wall_s=0.001))
        before = _children()
        with pytest.raises(Unreadable, match=r"longer than 0.001 s"):
            pool.parse_bytes("a.html", _PAGE)
        assert _children() <= before
        pool.close()

    def test_too_much_text(self) -> None:
        pool = ParserPool(limits=ParserLimits(text_bytes=1000))
        with pytest.raises(Unreadable, match="more than 1,000 characters"):
            pool.parse_bytes("a.html", b"<html>" + b"<p>words</p>" * 1000)
        pool.close()

    def test_a_process_that_cannot_start_is_named(self) -> None:
        pool = ParserPool(limits=ParserLimits(memory_bytes=1 << 20))
        with pytest.raises(Unreadable, match=r"did not survive|more memory"):
            pool.parse_bytes("a.html", _PAGE)
        pool.close()


class TestProcesses:
    def test_one_process_serves_many_files(self, own_pool: ParserPool) -> None:
        before = _children()
        own_pool.parse_bytes("a.html", _PAGE)
        first = _children() - before
        for _ in range(5):
            own_pool.parse_bytes("a.ipynb", samples.NOTEBOOK)
        assert len(first) == 1
        assert _children() - before == first
        own_pool.close()
        assert not first & _children()

    def test_plain_text_needs_none(self, own_pool: ParserPool) -> None:
        before = _children()
        own_pool.parse_bytes("a.md", b"# hello\n")
        assert _children() == before

    def test_a_killed_one_is_replaced(self, own_pool: ParserPool) -> None:
        before = _children()
        own_pool.parse_bytes("a.html", _PAGE)
        (child,) = _children() - before
        os.kill(child, 9)
        while Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        assert own_pool.parse_bytes("a.html", _PAGE).text.strip() == "hello"

    def test_a_file_whose_process_is_killed_is_read_by_another(self, own_pool: ParserPool) -> None:
        before = _children()
        killed: list[int] = []

        def kill() -> None:
            while not killed:
                time.sleep(0.002)
                for child in _children() - before:
                    os.kill(child, 9)
                    killed.append(child)

        killer = threading.Thread(target=kill)
        killer.start()
        document = own_pool.parse_bytes("a.html", _PAGE)
        killer.join()
        assert document.text.strip() == "hello"
        assert len(killed) == 1

    def test_threads_share_them(self) -> None:
        pool = ParserPool(max_processes=2)
        before = _children()
        texts: list[str] = []

        def work(number: int) -> None:
            for index in range(8):
                page = f"<html><p>{number}-{index}</p></html>".encode()
                texts.append(pool.parse_bytes("a.html", page).text.strip())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(texts) == sorted(f"{n}-{i}" for n in range(4) for i in range(8))
        assert len(_children() - before) <= 2
        pool.close()
        assert _children() <= before
