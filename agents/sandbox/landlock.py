"""`LandlockSandbox`: Landlock and seccomp, inside namespaces where they are permitted.

Without namespaces the command sees the machine's `/proc`, `/tmp` and `/dev`, of which Landlock opens only
what the policy names; signals reach only the command's own processes, and a supervisor ends what it leaves.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.sandbox.cgroup import control_group
from agents.sandbox.launch import launch, launcher_words
from agents.sandbox.order import Means, order_of
from agents.sandbox.policy import PROTECTED, SandboxPolicy, protected_below
from agents.sandbox.protection import removing_new_protected
from agents.sandbox.sandbox import Command, CommandResult, Layer, SandboxUnavailable
from agents.sandbox.scratch import scratch_folder
from agents.sandbox.visible_paths import base_environment, visible_paths


class LandlockSandbox:
    """See `agents.sandbox.sandbox.Sandbox`."""

    name = "landlock"

    def __init__(
        self,
        *,
        namespaces: bool,
        layers: tuple[Layer, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        self._namespaces = namespaces
        self.active_layers = layers
        self.notes = notes

    async def run(self, command: Command, policy: SandboxPolicy) -> CommandResult:
        """See `Sandbox.run`."""
        policy = policy.checked()
        if policy.network == "loopback" and not self._namespaces:
            raise SandboxUnavailable(
                "A loopback network of the sandbox's own needs user namespaces, which are not permitted "
                "here: use the network none or full, or install bubblewrap."
            )
        visible = visible_paths(policy.profile, policy.network)
        with (
            scratch_folder() as scratch,
            control_group(policy.limits) as group,
            removing_new_protected(policy.writable),
        ):
            for name in ("home", "tmp", "shm"):
                (scratch / name).mkdir()
            environment = base_environment(policy.profile, visible, scratch)
            writable: list[Path] = [scratch]
            if self._namespaces:
                writable += [*policy.writable, Path("/dev/shm")]  # noqa: S108 - private there
            else:
                writable += _without_protected(policy.writable)
            order = order_of(
                command,
                policy,
                command.variables(environment),
                Means(
                    namespaces=self._namespaces,
                    hides_sockets=False,
                    landlock=True,
                    seccomp=True,
                    counts_processes=group is not None,
                ),
                readable=(*visible, *policy.readable, *policy.writable),
                writable=writable,
                enter=self._enter(policy, scratch) if self._namespaces else None,
            )
            return await launch(
                launcher_words,
                order,
                command,
                wall_s=policy.limits.wall_s,
                group=group,
                stop_gently=not self._namespaces,
            )

    def _enter(self, policy: SandboxPolicy, scratch: Path) -> dict[str, Any]:
        return {
            "own_network": policy.network != "full",
            "loopback": policy.network == "loopback",
            "shared_memory": str(scratch / "shm") if Path("/dev/shm").is_dir() else "",  # noqa: S108
            "read_only": [str(path) for path in protected_below(policy.writable)],
        }


def _without_protected(writable: Sequence[Path]) -> list[Path]:
    """What may be changed where no mount makes an entry read-only.

    Landlock only adds rights on the way down. So a folder with a protected entry is opened entry by entry,
    and no new entry can be made at its top.
    """
    opened: list[Path] = []
    for folder in writable:
        if not protected_below((folder,)):
            opened.append(folder)
            continue
        entries = [one for one in folder.iterdir() if one.name not in PROTECTED]
        opened += [one for one in entries if not one.is_symlink()]
    return opened
