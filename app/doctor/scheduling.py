"""The scheduling policy and the batch former."""

from app.doctor.facts import Fact, Section
from app.settings.settings import Settings
from app.text.scheduling_titles import POLICY_TITLES


def scheduling(settings: Settings) -> Section:
    """The policy and the size of a step."""
    policy, budget = settings.scheduling_policy, settings.max_num_batched_tokens
    if settings.batch_former == "fixed":
        step = f"fixed: {budget} tokens"
    else:
        step = f"timed: {settings.step_target_ms:g} ms beside decodes, at most {budget} tokens"
    return Section(
        "scheduling",
        "Scheduling",
        (
            Fact("policy", "policy", policy, f"{policy}: {POLICY_TITLES[policy]}"),
            Fact("batch_former", "step", settings.batch_former, step),
        ),
    )
