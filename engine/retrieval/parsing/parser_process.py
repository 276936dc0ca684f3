"""The program of a parser process: `python -I parser_process.py ROOT MEMORY_BYTES`.

It restricts itself, then answers requests until its input ends. A request is two frames: JSON with the
format and limits, and the file. The answer is one frame of JSON: an `Extracted` as an object, or
`{"unreadable": reason}`. After running out of memory it answers with `"ends": true`, and ends.
"""

import json
import os
import sys
from pathlib import Path


def main(root: str, memory_bytes: str) -> int:
    """Serve until the input ends; the exit status."""
    sys.path.insert(0, root)
    from engine.retrieval.parsing.confinement import confine
    from engine.retrieval.parsing.frames import frame, read_frame

    # What parsers print must not reach the pipe of the answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    confine(Path(root), int(memory_bytes))
    requests = sys.stdin.buffer
    out_of_memory = frame(
        b'{"unreadable": "Its parser needs more memory than it may use.", "ends": true}'
    )
    while True:
        header, data = read_frame(requests), read_frame(requests)
        if header is None or data is None:
            return 0
        try:
            answer = frame(json.dumps(_answer(json.loads(header), data)).encode())
            fit = True
        except MemoryError:
            answer, fit = out_of_memory, False
        whole = memoryview(answer)
        while whole:
            whole = whole[answers.write(whole) or 0 :]
        if not fit:
            return 1


def _answer(request: dict[str, object], data: bytes) -> dict[str, object]:
    from engine.retrieval.api.errors import Unreadable
    from engine.retrieval.parsing.confinement import limit_cpu_time
    from engine.retrieval.parsing.parsers import extract

    try:
        limit_cpu_time(int(str(request["cpu_s"])))
        found = extract(str(request["kind"]), data, int(str(request["most"])))
        return found._asdict()
    except Unreadable as error:
        return {"unreadable": str(error)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
