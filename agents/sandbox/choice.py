"""`open_sandbox`: the best sandbox that works on this machine, found by running a command in each.

The order is bubblewrap, Landlock inside namespaces, Landlock alone. A sandbox is used only if all layers
that it requires are active; otherwise there is one sentence that says what is missing.
"""

import os
from collections.abc import Awaitable, Callable

from agents.sandbox.bubblewrap import BubblewrapSandbox, bubblewrap_program
from agents.sandbox.cgroup import parent_folders
from agents.sandbox.landlock import LandlockSandbox
from agents.sandbox.policy import SandboxMode
from agents.sandbox.sandbox import Layer, Sandbox, SandboxFailed, SandboxUnavailable
from agents.sandbox.self_test import self_test
from agents.sandbox.unconfined import Unconfined

SIGNALS_ABI = 6
"""From this version on Landlock keeps signals inside, which a process namespace does otherwise."""

_ALWAYS = frozenset({Layer.ENVIRONMENT, Layer.LIMITS, Layer.PRIVILEGES, Layer.SECCOMP})
_found: dict[SandboxMode, Sandbox | SandboxUnavailable] = {}


async def open_sandbox(mode: SandboxMode = "auto") -> Sandbox:
    """The sandbox for a mode. It is tested once in a process; later calls return the same.

    Raises:
        SandboxUnavailable: a required layer is missing on this machine.
    """
    if mode not in _found:
        try:
            _found[mode] = await _find(mode)
        except SandboxUnavailable as error:
            _found[mode] = error
    found = _found[mode]
    if isinstance(found, SandboxUnavailable):
        raise SandboxUnavailable(str(found))
    return found


async def _find(mode: SandboxMode) -> Sandbox:
    if mode == "off":
        return Unconfined()
    makers: list[Callable[[], Awaitable[Sandbox]]] = []
    if mode in ("auto", "bubblewrap"):
        makers.append(bubblewrap_here)
    if mode in ("auto", "landlock"):
        makers.append(landlock_here)
    reasons: list[str] = []
    for make in makers:
        try:
            return await make()
        except (SandboxUnavailable, SandboxFailed) as error:
            reasons.append(str(error))
    raise SandboxUnavailable(f"Commands cannot be run in a sandbox here. {' '.join(reasons)}")


async def bubblewrap_here() -> BubblewrapSandbox:
    """The bubblewrap sandbox, tested.

    Raises:
        SandboxUnavailable: bubblewrap is not installed, or a required layer is missing.
        SandboxFailed: it does not work here, such as inside a container.
    """
    program = bubblewrap_program()
    if program is None:
        raise SandboxUnavailable("bubblewrap is not installed.")
    abi, _ = _kernel()
    plain = BubblewrapSandbox(program, landlock_abi=abi)
    layers = await self_test(plain, landlock=abi > 0, cgroup=bool(parent_folders()))
    _require(plain.name, layers, _ALWAYS | {Layer.NAMESPACES, Layer.MOUNTS})
    return BubblewrapSandbox(program, landlock_abi=abi, layers=layers, notes=tuple(_notes(layers)))


async def landlock_here(*, namespaces: bool | None = None) -> LandlockSandbox:
    """The Landlock sandbox, tested, in namespaces where they are permitted.

    Args:
        namespaces: whether it uses namespaces; None tries with them first.

    Raises:
        SandboxUnavailable: a required layer is missing.
        SandboxFailed: a layer could not be applied.
    """
    abi, filters = _kernel()
    if not abi:
        raise SandboxUnavailable("This kernel has no Landlock (Linux 5.13 or newer has it).")
    if not filters:
        raise SandboxUnavailable("This kernel has no seccomp filters.")
    if namespaces is not False:
        try:
            return await _landlock(namespaces=True)
        except SandboxFailed:
            if namespaces:
                raise
    if abi < SIGNALS_ABI:
        raise SandboxUnavailable(
            "User namespaces are not permitted here, and the kernel's Landlock "
            f"(version {abi}) does not keep signals inside, as version {SIGNALS_ABI} does (Linux 6.12)."
        )
    return await _landlock(namespaces=False)


async def _landlock(*, namespaces: bool) -> LandlockSandbox:
    plain = LandlockSandbox(namespaces=namespaces)
    layers = await self_test(plain, landlock=True, cgroup=bool(parent_folders()))
    wanted = {Layer.LANDLOCK, *([Layer.NAMESPACES] if namespaces else [])}
    _require(plain.name, layers, _ALWAYS | wanted)
    notes = _notes(layers)
    if not namespaces:
        notes.append(
            "User namespaces are not permitted here: commands see the names of this machine's processes."
        )
    return LandlockSandbox(namespaces=namespaces, layers=layers, notes=tuple(notes))


def _notes(layers: tuple[Layer, ...]) -> list[str]:
    if Layer.CGROUP in layers:
        return []
    notes = ["No control group can be made here: memory is limited for each process, not together."]
    if os.geteuid() == 0:
        notes.append("The limit of processes is checked 50 times a second, not by the kernel.")
    return notes


def _require(name: str, layers: tuple[Layer, ...], required: frozenset[Layer]) -> None:
    missing = sorted(required - set(layers))
    if missing:
        raise SandboxUnavailable(f"{name} lacks a required layer here: {', '.join(missing)}.")


def _kernel() -> tuple[int, bool]:
    """The version of Landlock, and whether there are seccomp filters."""
    try:
        from engine._core import has_seccomp_filters, landlock_abi
    except ImportError as error:
        raise SandboxUnavailable(
            "The extension module is older than the program: build it again."
        ) from error
    return landlock_abi(), has_seccomp_filters()
