"""Functions shared by the benchmarks: CPU name, progress messages, result files."""

import json
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path


def cpu_name() -> str:
    """Number of logical CPUs and the model name from /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [
        ln.partition(":")[2].strip() for ln in text.splitlines() if ln.startswith("model name")
    ]
    return f"{len(names)} × {names[0]}" if names else platform.processor()


def say(sentence: str) -> None:
    """Print a progress message to standard error."""
    print(sentence, file=sys.stderr, flush=True)


def write_result(path: Path, result: Mapping[str, object]) -> None:
    """Write a result as JSON with date, CPU and command line. Replaces the file atomically."""
    script = Path(sys.argv[0])
    # Absolute paths are private: only their last component is written.
    arguments = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    origin = {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu_name(),
        "command": " ".join(["python", f"{script.parent.name}/{script.name}", *arguments]),
    }
    text = json.dumps(origin | dict(result), indent=1, ensure_ascii=False)
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n")
    part.replace(path)
