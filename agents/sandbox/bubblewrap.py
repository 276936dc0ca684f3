"""`BubblewrapSandbox`: bubblewrap makes the mounts and namespaces, our launcher does the rest.

The new root has the visible files, a private `/tmp`, `/dev/shm` and `/proc`, and nothing else: what is not
visible does not exist.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from agents.sandbox.cgroup import control_group
from agents.sandbox.launch import LAUNCHER_FILE, extension_file, launch, launcher_words
from agents.sandbox.order import Means, order_of
from agents.sandbox.policy import SandboxPolicy, protected_below
from agents.sandbox.protection import removing_new_protected
from agents.sandbox.sandbox import Command, CommandResult, Layer
from agents.sandbox.scratch import scratch_folder
from agents.sandbox.visible_paths import base_environment, links_to, visible_paths

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)
_TMP = Path("/tmp")  # noqa: S108 - private in the mount namespace, as is the next
_SHM = Path("/dev/shm")  # noqa: S108


def bubblewrap_program() -> str | None:
    """The program, if it is installed."""
    return shutil.which("bwrap")


class BubblewrapSandbox:
    """See `agents.sandbox.sandbox.Sandbox`."""

    name = "bubblewrap"

    def __init__(
        self,
        program: str,
        *,
        landlock_abi: int,
        layers: tuple[Layer, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        self._program = program
        self._landlock = landlock_abi > 0
        self.active_layers = layers
        self.notes = notes

    async def run(self, command: Command, policy: SandboxPolicy) -> CommandResult:
        """See `Sandbox.run`."""
        links = {link for path in policy.readable for link in links_to(str(path))}
        links |= set(command.links())
        policy = policy.checked()
        visible = visible_paths(policy.profile, policy.network)
        with (
            scratch_folder() as scratch,
            control_group(policy.limits) as group,
            removing_new_protected(policy.writable),
        ):
            for name in ("home", "tmp", "shm"):
                (scratch / name).mkdir()
            environment = base_environment(policy.profile, visible, scratch)
            order = order_of(
                command,
                policy,
                command.variables(environment),
                Means(
                    namespaces=True,
                    hides_sockets=True,
                    landlock=self._landlock,
                    seccomp=True,
                    counts_processes=group is not None,
                ),
                readable=(*visible, *policy.readable),
                writable=(*policy.writable, scratch, _TMP, _SHM),
                enter=None,
            )
            mounts = self._mounts(policy, visible, scratch, links)
            return await launch(
                lambda status: [*mounts, "--", *launcher_words(status)],
                order,
                command,
                wall_s=policy.limits.wall_s,
                group=group,
            )

    def _mounts(
        self, policy: SandboxPolicy, visible: list[Path], scratch: Path, links: set[Path]
    ) -> list[str]:
        """The command line up to the program that bubblewrap executes."""
        words = [self._program, "--die-with-parent", *_NAMESPACES]
        if policy.network != "full":
            words.append("--unshare-net")
        words += ["--dev", "/dev", "--proc", "/proc"]
        for name, target in (("tmp", _TMP), ("shm", _SHM)):
            words += ["--bind", str(scratch / name), str(target)]
        changed = {*policy.writable, scratch}
        shown = {*visible, *policy.readable, LAUNCHER_FILE, extension_file()} - changed
        shown |= {link for name in (sys.executable, sys.prefix) for link in links_to(name)} | links
        every = shown | changed
        for path in sorted(every, key=lambda path: len(path.parts)):
            above = every & set(path.parents)
            if any(one.is_symlink() for one in above):
                continue  # reached through that link, whose target is shown
            if path in changed:
                words += ["--bind", str(path), str(path)]
            elif not path.is_symlink():
                words += ["--ro-bind", str(path), str(path)]
            elif not above:  # otherwise the link is there already
                words += ["--symlink", os.readlink(path), str(path)]
        words += _read_only(protected_below(policy.writable))
        return [*words, "--remount-ro", "/", "--chdir", "/"]


def _read_only(paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind", str(path), str(path))]
