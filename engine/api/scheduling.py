"""`Scheduling`: the scheduling policy and the batch former. May be changed at run time."""

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
        policy: order of requests: `fcfs` first come first served, `priority` lowest number, `sjf`
            shortest job first, `edf` earliest deadline first, `lrs` least remaining slack.
        batch_former: tokens per step: `fixed` uses the token budget, `timed` as many as keep a step
            with decode rows within `step_target_ms`.
        step_target_ms: target step time of `timed`, in milliseconds.
    """

    policy: Policy = "fcfs"
    batch_former: BatchFormerName = "fixed"
    step_target_ms: float = 60.0

    def validate(self) -> None:
        """Check values that a user or client gave.

        Raises:
            InvalidRequest: unknown name, or target out of range.
        """
        if self.policy not in POLICIES:
            raise InvalidRequest(
                f"Unknown scheduling policy {self.policy!r:.40}: use one of {', '.join(POLICIES)}.",
                param="policy",
            )
        if self.batch_former not in BATCH_FORMERS:
            raise InvalidRequest(
                f"Unknown batch former {self.batch_former!r:.40}: use one of "
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
