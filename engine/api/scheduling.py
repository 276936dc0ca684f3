"""`Scheduling`: in what order requests run and how large a step is. May change while they run."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from engine.api.errors import InvalidRequest

Policy = Literal["fcfs", "priority", "sjf", "edf", "lrs"]
BatchFormerName = Literal["fixed", "timed"]

POLICIES: tuple[Policy, ...] = get_args(Policy)
BATCH_FORMERS: tuple[BatchFormerName, ...] = get_args(BatchFormerName)
MIN_STEP_TARGET_MS = 1.0
MAX_STEP_TARGET_MS = 10_000.0


@dataclass(frozen=True, slots=True)
class Scheduling:
    """How one model's requests are scheduled.

    Attributes:
        policy: who goes first: `fcfs` first come, `priority` lowest number, `sjf` shortest job,
            `edf` earliest deadline, `lrs` least remaining slack.
        batch_former: how many tokens a step has: `fixed` takes the token budget, `timed` as many
            as keep a step that decodes within `step_target_ms`.
        step_target_ms: what `timed` aims at, milliseconds.
    """

    policy: Policy = "fcfs"
    batch_former: BatchFormerName = "fixed"
    step_target_ms: float = 60.0

    def validate(self) -> None:
        """Check values that came from outside.

        Raises:
            InvalidRequest: a name that is none, or a target out of range.
        """
        if self.policy not in POLICIES:
            raise InvalidRequest(
                f"{self.policy!r:.40} is no scheduling policy: take one of {', '.join(POLICIES)}.",
                param="policy",
            )
        if self.batch_former not in BATCH_FORMERS:
            raise InvalidRequest(
                f"{self.batch_former!r:.40} is no batch former: take one of "
                f"{', '.join(BATCH_FORMERS)}.",
                param="batch_former",
            )
        target = self.step_target_ms
        number = isinstance(target, int | float) and not isinstance(target, bool)
        if not number or not (
            math.isfinite(target) and MIN_STEP_TARGET_MS <= target <= MAX_STEP_TARGET_MS
        ):
            raise InvalidRequest(
                f"step_target_ms is {target!r:.40}; it must be between {MIN_STEP_TARGET_MS:g} and "
                f"{MAX_STEP_TARGET_MS:g} milliseconds.",
                param="step_target_ms",
            )
