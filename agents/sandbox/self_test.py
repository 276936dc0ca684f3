"""`self_test`: runs a command in a sandbox and looks at what it could do."""

import os
import sys

import orjson

from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command, Layer, Sandbox, SandboxFailed
from agents.sandbox.scratch import scratch_folder

_SELF_TEST_S = 20.0
_PROBE = """
import json, os, sys
def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
def writes(path):
    try:
        open(path, "w").close()
        return True
    except OSError:
        return False
status = dict(line.split(":\\t", 1) for line in text("/proc/self/status").splitlines() if ":\\t" in line)
print(json.dumps({
    "privileges": status.get("NoNewPrivs") == "1" and not int(status.get("CapEff", "1"), 16),
    "seccomp": status.get("Seccomp") == "2",
    "namespaces": [os.readlink("/proc/self/ns/" + name) for name in ("user", "mnt", "pid", "ipc", "net")],
    "environment": "PRAVAHA_SELF_TEST" not in os.environ,
    "reads": bool(text(sys.argv[1])),
    "writes": writes(sys.argv[1] + ".new"),
    "writes_inside": writes(sys.argv[2]),
}))
"""


def _words() -> list[str]:
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", _PROBE]


async def self_test(sandbox: Sandbox, *, landlock: bool, cgroup: bool) -> tuple[Layer, ...]:
    """The layers that are active around a command of this sandbox.

    Args:
        sandbox: what to test.
        landlock: whether it applies Landlock.
        cgroup: whether it uses control groups.

    Raises:
        SandboxFailed: a layer could not be applied, or did not do what it is there for.
    """
    with scratch_folder("pravaha-secret-") as outside, scratch_folder("pravaha-inside-") as inside:
        secret = outside / "secret"
        secret.write_text("secret")
        command = Command([*_words(), str(secret), str(inside / "new")], folder=inside)
        policy = SandboxPolicy(writable=(inside,), limits=Limits(wall_s=_SELF_TEST_S))
        done = await sandbox.run(command, policy)
        leaked = os.listdir(outside) != [secret.name]
    try:
        seen = orjson.loads(done.output.text)
    except orjson.JSONDecodeError:
        said = done.output.text.strip()[-300:] or f"status {done.status}"
        raise SandboxFailed(f"The sandbox's self-test did not run: {said}.") from None
    if seen["reads"] or seen["writes"] or leaked or not seen["writes_inside"]:
        raise SandboxFailed("The sandbox's self-test could reach files outside, or none inside.")
    own = [os.readlink(f"/proc/self/ns/{name}") for name in ("user", "mnt", "pid", "ipc", "net")]
    separate = not set(own) & set(seen["namespaces"])
    found = {
        Layer.ENVIRONMENT: seen["environment"],
        Layer.LIMITS: True,
        Layer.PRIVILEGES: seen["privileges"],
        Layer.NAMESPACES: separate,
        Layer.MOUNTS: separate and sandbox.name == "bubblewrap",
        Layer.LANDLOCK: landlock,
        Layer.SECCOMP: seen["seccomp"],
        Layer.CGROUP: cgroup,
    }
    return tuple(layer for layer, active in found.items() if active)
