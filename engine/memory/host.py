"""Available host memory: the machine's `MemAvailable` or the remainder of the cgroup limit.

Cached file pages count as available in both: the kernel drops them when memory is short. A model that was
just fetched or verified is such pages.
"""

from pathlib import Path

_UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that can be allocated without swapping.

    The smaller of `MemAvailable` (proc(5)) and the remainder of the memory cgroup's limit.

    Args:
        root: directory in which `proc` and `sys` are mounted; tests pass a temporary one.

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


def resident_anonymous_memory(root: Path = Path("/")) -> int:
    """Bytes of this process's resident pages that belong to no file; 0 if they are unknown.

    Args:
        root: directory in which `proc` is mounted; tests pass a temporary one.
    """
    try:
        lines = (root / "proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


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
    """The smallest `limit - usage`, cached files apart, from this process's memory cgroup to the root."""
    try:
        entries = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    tightest: int | None = None
    for entry in entries:
        _, controllers, path = entry.split(":", 2)
        if controllers == "":
            base, limit_name, usage_name = root / "sys/fs/cgroup", "memory.max", "memory.current"
            cached = ("inactive_file", "active_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            limit_name, usage_name = "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = ("total_inactive_file", "total_active_file")
        else:
            continue
        group = base / path.lstrip("/")
        # Inside a container the path may refer to the host's tree; then only the base is mounted.
        for directory in (group, *group.parents):
            if not directory.is_relative_to(base):
                break
            limit, usage = _number(directory / limit_name), _number(directory / usage_name)
            if limit is not None and usage is not None and limit < _UNLIMITED:
                usage -= sum(_statistics(directory / "memory.stat", cached))
                rest = max(0, limit - max(0, usage))
                tightest = rest if tightest is None else min(tightest, rest)
    return tightest


def _statistics(path: Path, names: tuple[str, ...]) -> list[int]:
    """The numbers of these names in a file of `name number` lines; those it lacks are left out."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    return [
        int(line.split()[1]) for line in lines if line.startswith(tuple(f"{n} " for n in names))
    ]


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
