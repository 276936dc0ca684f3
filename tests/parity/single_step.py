"""Runs one step of the native executor under ptrace(2), instruction by instruction. Linux on x86-64.

    python -m tests.parity.single_step MODEL LEVEL TOKENS

Prints JSON: how many instructions of the extension ran, and how many distinct ones of each encoding. Code of
other libraries is not counted: libc chooses its own instructions. Exits with `DENIED` where ptrace is not
permitted.
"""

import ctypes
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from engine import _core
from engine.executors.base import StepPlan, StepResult
from tests.parity.levels import forced
from tests.parity.loading import load_stepper
from tests.parity.stepper import Run

DENIED = 77

_TRACE_ME, _CONTINUE, _PEEK_REGISTER, _SINGLE_STEP = 0, 7, 3, 9
_RIP = 16 * 8
"""Offset of the instruction pointer in `struct user`."""
_LEGACY_PREFIXES = frozenset(bytes.fromhex("66 67 f0 f2 f3 2e 36 3e 26 64 65"))
_TILE_OPCODES = frozenset(bytes.fromhex("49 4b 5c 5e"))
"""Opcodes of the second VEX map that load, store, clear, configure or multiply tiles."""
_VNNI_OPCODES = frozenset(bytes.fromhex("50 51 52 53"))
"""The same, of int8 and int16 dot products."""

_ptrace: Callable[..., int] = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.restype = ctypes.c_long  # type: ignore[attr-defined]
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]  # type: ignore[attr-defined]


def encoding(code: bytes) -> str:
    """The encoding of an instruction: "sse" (all that has no VEX prefix), "vex", "vnni", "tile", "evex".

    Dot products on 256 bits are "vnni" in their EVEX form, too, which level `avxvnni` executes where the
    machine lacks the VEX form.
    """
    at = 0
    while code[at] in _LEGACY_PREFIXES:
        at += 1
    match code[at]:
        case 0x62 if (
            code[at + 1] & 7 == 2 and code[at + 3] >> 5 & 3 == 1 and code[at + 4] in _VNNI_OPCODES
        ):
            return "vnni"
        case 0x62:
            return "evex"
        case 0xC4 if code[at + 1] & 0x1F == 2 and code[at + 3] in _TILE_OPCODES:
            return "tile"
        case 0xC4 if code[at + 1] & 0x1F == 2 and code[at + 3] in _VNNI_OPCODES:
            return "vnni"
        case 0xC4 | 0xC5:
            return "vex"
    return "sse"


def step_once(path: Path, level: str, tokens: int) -> None:
    """In the traced process: run a step, repeated with the same plan between two stops."""
    with forced(level):
        stepper = load_stepper(path, kv_dtype="auto", threads=1, rows=1, max_model_len=64)
    executor, plans = stepper.executor, list[StepPlan]()
    execute = executor.execute

    def record(plan: StepPlan) -> StepResult:
        plans.append(plan)
        return execute(plan)

    executor.execute = record  # type: ignore[method-assign]
    stepper.run([Run([3 + at for at in range(tokens)], 1)])
    (plan,) = plans
    if _ptrace(_TRACE_ME, 0, None, None) != 0:
        os._exit(DENIED)
    os.kill(os.getpid(), signal.SIGSTOP)
    execute(plan)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)


def trace(pid: int) -> tuple[int, Counter[str]]:
    """Single-step a stopped process to its next stop."""
    begin, end, code = extension(pid)
    seen: set[int] = set()
    count = 0
    while True:
        _ptrace(_SINGLE_STEP, pid, None, None)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status) or os.WSTOPSIG(status) != signal.SIGTRAP:
            break
        at = _ptrace(_PEEK_REGISTER, pid, _RIP, None)
        if begin <= at < end:
            count += 1
            seen.add(at)
    return count, Counter(encoding(code[at - begin : at - begin + 16]) for at in seen)


def extension(pid: int) -> tuple[int, int, bytes]:
    """Begin and end of the extension's code in the memory of a process, and the code."""
    name = str(Path(str(_core.__file__)).resolve())
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split()
        if fields[1] == "r-xp" and fields[-1] == name:
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            with Path(name).open("rb") as file:
                file.seek(int(fields[2], 16))
                return begin, end, file.read(end - begin) + bytes(16)
    raise AssertionError(f"{name} is not mapped")


def main() -> None:
    path, level, tokens = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    pid = os.fork()
    if pid == 0:
        step_once(path, level, tokens)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    count, encodings = trace(pid)
    _ptrace(_CONTINUE, pid, None, None)
    os.waitpid(pid, 0)
    print(json.dumps({"instructions": count, "encodings": encodings}))


if __name__ == "__main__":
    main()
