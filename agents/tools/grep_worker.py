"""Searches files for a regular expression; run as a script in a process that can be killed.

Python's expressions can take exponential time (CWE-1333), and a thread that evaluates one cannot be stopped.
Reads one JSON object from standard input (`root`, `pattern`, `paths`, `limit`, `max_bytes`) and writes one.
Only the standard library is imported: the interpreter is isolated (`python -I`).
"""

import json
import os
import re
import sys

MAX_LINE = 400


def search(
    root: str, pattern: str, paths: list[str], limit: int, max_bytes: int
) -> dict[str, object]:
    """Matching lines, and how many files were searched."""
    expression = re.compile(pattern)
    found = []
    searched = 0
    for path in paths:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(os.path.join(root, path), flags), "rb") as file:
                data = file.read(max_bytes + 1)
        except OSError:
            continue
        if len(data) > max_bytes or b"\0" in data[:8192]:
            continue
        searched += 1
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if expression.search(line):
                found.append([path, number, line[:MAX_LINE]])
                if len(found) >= limit:
                    return {"found": found, "searched": searched, "truncated": True}
    return {"found": found, "searched": searched, "truncated": False}


if __name__ == "__main__":
    json.dump(search(**json.load(sys.stdin)), sys.stdout)
