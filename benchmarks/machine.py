"""Functions shared by the benchmarks: origin of a measurement, progress messages, result files."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.compact_json import compact_json

ROOT = Path(__file__).resolve().parents[1]
VECTOR_FLAGS = ("avx", "amx", "fma", "f16c")
"""Prefixes of the CPU flags on which the speed of inference depends."""


def cpu_facts(cpuinfo: str) -> dict[str, object]:
    """Model name, family, model number, logical CPUs and vector instruction sets.

    The family and model number identify the microarchitecture where a virtual machine hides the name.

    Args:
        cpuinfo: text of /proc/cpuinfo.
    """
    processors = [
        {key.strip(): value.strip() for key, _, value in (ln.partition(":") for ln in block)}
        for block in (text.splitlines() for text in cpuinfo.split("\n\n"))
        if any(ln.startswith("processor") for ln in block)
    ]
    first: Mapping[str, str] = processors[0] if processors else {}
    flags = first.get("flags", "").split()
    return {
        "cpu": first.get("model name") or platform.processor(),
        "family": first.get("cpu family"),
        "model": first.get("model"),
        "logical_cpus": len(processors),
        "flags": sorted(flag for flag in flags if flag.startswith(VECTOR_FLAGS)),
    }


def machine() -> dict[str, object]:
    """This machine: CPU, CPUs that this process may use, memory."""
    try:
        facts = cpu_facts(Path("/proc/cpuinfo").read_text())
    except OSError:
        facts = {"cpu": platform.processor()}
    return facts | {
        "usable_cpus": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
    }


def command_line(arguments: Sequence[str]) -> str:
    """The command with only the last component of absolute paths, since the rest is private."""

    def shown(word: str) -> str:
        option, equals, value = word.rpartition("=")
        return option + equals + (Path(value).name if Path(value).is_absolute() else value)

    script = Path(arguments[0])
    return " ".join(["python", f"{script.parent.name}/{script.name}", *map(shown, arguments[1:])])


def commit() -> str | None:
    """The commit of this checkout, with `-dirty` if files differ from it; None if git does not know."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def with_origin(result: Mapping[str, object]) -> dict[str, object]:
    """The result after date, machine, versions and command line of the measurement."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "command": command_line(sys.argv),
        "commit": commit(),
        "pravaha": version("pravaha"),
        "python": platform.python_version(),
        **result,
    }


def say(sentence: str) -> None:
    """Print a progress message to standard error."""
    print(sentence, file=sys.stderr, flush=True)


def write_result(path: Path, result: Mapping[str, object]) -> None:
    """Write a result and its origin as JSON. Replaces the file atomically."""
    text = compact_json(with_origin(result))
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n")
    part.replace(path)
