"""How much memory this process may still take: the machine's rest or its control group's."""

from pathlib import Path

_UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that can be allocated without swapping: `MemAvailable` or the cgroup's rest.

    Args:
        root: where `proc` and `sys` are mounted; tests give a directory of their own.

    Raises:
        OSError: neither source can be read.
    """
    candidates = [
        size for size in (_mem_available(root), _cgroup_available(root)) if size is not None
    ]
    if not candidates:
        raise OSError(
            f"Free memory is unknown: neither {root}proc/meminfo nor a memory cgroup is readable."
        )
    return min(candidates)


def _mem_available(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_available(root: Path) -> int | None:
    """The tightest `limit - usage` from this process's memory cgroup up to the root."""
    try:
        entries = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    tightest: int | None = None
    for entry in entries:
        _, controllers, path = entry.split(":", 2)
        if controllers == "":
            base, limit_name, usage_name = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            limit_name, usage_name = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = base / path.lstrip("/")
        # Inside a container the path may name the host's tree: what is mounted then is the base.
        for directory in (group, *group.parents):
            if not directory.is_relative_to(base):
                break
            limit, usage = _number(directory / limit_name), _number(directory / usage_name)
            if limit is not None and usage is not None and limit < _UNLIMITED:
                rest = max(0, limit - usage)
                tightest = rest if tightest is None else min(tightest, rest)
    return tightest


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
