"""The processor, the share of it that this process may use, and the kernels that will run."""

import os
import platform
from pathlib import Path
from typing import Any

from app.doctor.facts import Fact, Section
from app.settings.settings import Settings

_NOTEWORTHY = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimddp",
    "i8mm",
    "sve",
)
"""As /proc/cpuinfo spells them."""


def processor(settings: Settings, root: Path = Path("/")) -> Section:
    """Facts about the processor.

    Args:
        settings: for the configured threads and dispatch level.
        root: where `proc` and `sys` are mounted.
    """
    fields = _cpuinfo(root / "proc/cpuinfo")
    model = fields.get("model name") or platform.processor() or platform.machine()
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    shown = [flag for flag in _NOTEWORTHY if flag in flags]
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cgroup_quota(root)
    limit = "none" if quota is None else f"{quota:g} processors"
    return Section(
        "processor",
        "Processor",
        (
            Fact("model", "model", model, model),
            Fact("features", "instruction sets", shown, " ".join(shown) or "none of note"),
            Fact("logical", "logical processors", os.cpu_count(), str(os.cpu_count())),
            Fact("allowed", "this process may use", allowed, f"{allowed} of them"),
            Fact("quota", "container limit", quota, limit),
            *_kernels(settings),
        ),
    )


def _kernels(settings: Settings) -> tuple[Fact, ...]:
    """The dispatch level and threads of the native executor."""
    try:
        from engine import _core
    except ImportError as error:
        return (
            Fact(
                "dispatch",
                "kernels",
                None,
                f"the Rust core can't be loaded ({error})",
                "problem",
                "build it with `make setup`.",
            ),
        )
    describe: Any = getattr(_core, "cpu_features", None)
    if describe is None:
        text = "this build of the Rust core has no native executor"
        return (
            Fact("dispatch", "kernels", None, text, "problem", "rebuild it with `make setup`."),
        )
    found: dict[str, Any] = describe()
    level = settings.dispatch if settings.dispatch != "auto" else found["level"]
    threads = settings.threads or found["threads"]
    obstacles = [f"{name}: {obstacle}" for name, obstacle in found["obstacles"].items()]
    return (
        Fact("dispatch", "kernels that will run", level, str(level)),
        Fact("obstacles", "kernels that cannot run", obstacles, "; ".join(obstacles) or "none"),
        Fact("threads", "compute threads", threads, str(threads)),
    )


def cgroup_quota(root: Path) -> float | None:
    """CPU quota of the control group in processors, or None without a limit."""
    try:
        quota, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        return _cgroup_v1_quota(root / "sys/fs/cgroup/cpu")
    return None if quota == "max" else int(quota) / int(period)


def _cgroup_v1_quota(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return quota / period if quota > 0 else None


def _cpuinfo(path: Path) -> dict[str, str]:
    """The first processor's fields."""
    try:
        block = path.read_text(errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
