"""`ParserWorker`: one parser process and the pipes to it. For one thread at a time."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson

import engine
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing import parser_process
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.frames import HEADER_BYTES, frame, frame_length
from engine.retrieval.parsing.ocr import ocr_installed
from engine.retrieval.parsing.outline import MAX_ROW_HEADER, MAX_TITLE, RowHeader, TextHeading
from engine.retrieval.parsing.parser_limits import ParserLimits

_ROOT = Path(engine.__file__).resolve().parent.parent
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
_CHUNK = 1 << 20
_WITH_OCR = frozenset(["pdf", "image", "mail", "mailbox"])
"""Formats that may hold scanned pages; a mail has them attached."""
_MAX_JSON_GROWTH = 8
"""JSON of a text is at most this many times as long as its UTF-8, with room for headings and breaks."""
_MAX_ITEMS = 4_000_000
_STOP_S = 5.0


class WorkerDied(Exception):
    """The process ended in the middle of a request; the message says how."""


class ParserWorker:
    """A process that parses one file after another."""

    def __init__(self, limits: ParserLimits) -> None:
        """Start the process."""
        self._limits = limits
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", parser_process.__file__),
                *(str(_ROOT), str(limits.memory_bytes)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            bufsize=0,
            start_new_session=True,  # Ctrl+C goes to the user's program, which decides
        )
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def extract(self, kind: str, data: bytes) -> Extracted:
        """Parse a file; see `parsers.extract`.

        Raises:
            Unreadable: the file has no text that can be read, or its parser was too slow or too large.
            WorkerDied: the process crashed. It is not usable any more, as after a time limit: see `alive`.
        """
        most = self._limits.text_bytes
        factor = self._limits.ocr_factor if kind in _WITH_OCR and ocr_installed() else 1
        request = orjson.dumps({"kind": kind, "cpu_s": factor * self._limits.cpu_s, "most": most})
        answer = self._exchange(memoryview(frame(request, data)), factor * self._limits.wall_s)
        try:
            found = orjson.loads(answer)
            if found.get("ends"):
                self.stop()  # it may not have ended yet, and takes no request any more
            return _checked(found, most)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.stop()
            raise WorkerDied("it gave an answer that makes no sense") from error

    def stop(self) -> None:
        """End the process. Idempotent."""
        self._process.kill()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            return  # the kernel does not let it end yet; its pipes are closed below all the same
        finally:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def _exchange(self, request: memoryview, wall_s: float) -> bytes:
        """Send a request and read its answer, within the time limit."""
        if self._process.stdin is None or self._process.stdout is None:
            raise WorkerDied("it has no pipes")
        sink, source = self._process.stdin.fileno(), self._process.stdout.fileno()
        deadline = time.monotonic() + wall_s
        longest = _MAX_JSON_GROWTH * self._limits.text_bytes + (64 << 20)
        received = bytearray()
        needed = HEADER_BYTES
        poll = select.poll()  # unlike `select` it takes descriptors beyond 1,023
        poll.register(source, select.POLLIN)
        poll.register(sink, select.POLLOUT)
        while len(received) < needed:
            left = deadline - time.monotonic()
            if left <= 0:
                self.stop()
                raise Unreadable(f"Its parser ran longer than {wall_s:g} s.")
            ready = dict(poll.poll(left * 1000))
            if sink in ready:
                request = self._send(sink, request)
                if not request:
                    poll.unregister(sink)
            if source in ready:
                part = os.read(source, _CHUNK)
                if not part:
                    raise WorkerDied(self._how_it_ended())
                received += part
            if needed == HEADER_BYTES and len(received) >= HEADER_BYTES:
                needed = HEADER_BYTES + frame_length(bytes(received[:HEADER_BYTES]))
                if needed > longest:
                    self.stop()
                    raise Unreadable("Its parser found more text than is permitted.")
        return bytes(received[HEADER_BYTES:needed])

    @staticmethod
    def _send(sink: int, request: memoryview) -> memoryview:
        try:
            return request[os.write(sink, request[:_CHUNK]) :]
        except BlockingIOError:
            return request
        except BrokenPipeError:
            return request[:0]  # its end is seen where the answer is read

    def _how_it_ended(self) -> str:
        """For `WorkerDied`.

        Raises:
            Unreadable: the file used the time that it may, so that another attempt would end in the same way.
        """
        try:
            status = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.stop()
            return "it closed its output"
        if status == -signal.SIGXCPU:
            raise Unreadable("Its parser used more processor time than it may.")
        return (
            f"it was killed by signal {-status}" if status < 0 else f"it ended with status {status}"
        )


def _checked(answer: Any, most: int) -> Extracted:
    """An answer as a value. The process has read hostile bytes, so nothing in it is taken on trust."""
    if "unreadable" in answer:
        raise Unreadable(str(answer["unreadable"])[:500])
    text = answer["text"]
    if not isinstance(text, str) or len(text) > most:
        raise ValueError("text")
    title = answer["title"]
    media_type = answer["media_type"]
    return Extracted(
        text,
        tuple(
            TextHeading(int(level), str(name)[:MAX_TITLE], int(start))
            for level, name, start in answer["headings"][:_MAX_ITEMS]
        ),
        tuple(int(one) for one in answer["breaks"][:_MAX_ITEMS]),
        tuple(int(one) for one in answer["pages"][:_MAX_ITEMS]),
        None if title is None else str(title)[:MAX_TITLE],
        tuple(str(one)[:500] for one in answer["notes"][:1000]),
        None if media_type is None else str(media_type)[:200],
        tuple(
            RowHeader(int(start), None if header is None else str(header)[:MAX_ROW_HEADER])
            for start, header in answer["row_headers"][:_MAX_ITEMS]
        ),
    )
