"""`Unconfined`: commands without a sandbox, for users who switched it off: environment and limits only."""

from agents.sandbox.launch import launch, launcher_words
from agents.sandbox.order import Means, order_of
from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.sandbox import Command, CommandResult, Layer
from agents.sandbox.scratch import scratch_folder
from agents.sandbox.visible_paths import base_environment, visible_paths


class Unconfined:
    """See `agents.sandbox.sandbox.Sandbox`. A command can read and change what the user can."""

    name = "off"
    active_layers = (Layer.ENVIRONMENT, Layer.LIMITS, Layer.PRIVILEGES)
    notes = ("The sandbox is off: commands can read and change everything that you can.",)

    async def run(self, command: Command, policy: SandboxPolicy) -> CommandResult:
        """See `Sandbox.run`. Files and network of the policy are not enforced."""
        policy = policy.checked()
        visible = visible_paths(policy.profile, policy.network)
        with scratch_folder() as scratch:
            for name in ("home", "tmp"):
                (scratch / name).mkdir()
            environment = base_environment(policy.profile, visible, scratch)
            order = order_of(
                command,
                policy,
                command.variables(environment),
                Means(
                    namespaces=False,
                    hides_sockets=False,
                    landlock=False,
                    seccomp=False,
                    counts_processes=False,
                ),
                readable=(),
                writable=(),
                enter=None,
            )
            return await launch(
                launcher_words, order, command, wall_s=policy.limits.wall_s, stop_gently=True
            )
