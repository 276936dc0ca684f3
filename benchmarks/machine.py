"""What benchmarks say of the machine, and while they run."""

import platform
import sys
from pathlib import Path


def cpu_name() -> str:
    """The processor as the kernel calls it, and how many there are."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [
        ln.partition(":")[2].strip() for ln in text.splitlines() if ln.startswith("model name")
    ]
    return f"{len(names)} × {names[0]}" if names else platform.processor()


def say(sentence: str) -> None:
    """Progress, apart from the result."""
    print(sentence, file=sys.stderr, flush=True)
