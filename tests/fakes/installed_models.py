"""Installed models for tests of the front ends."""

from engine.api.available_model import AvailableModel

LOADED = AvailableModel("fake-135m", 98 * 2**20, "llama", 134_515_008, "Q4_1", 8192, loaded=True)
OTHER = AvailableModel("qwen3-0.6b", 640 * 2**20, "qwen3", 596_000_000, "Q8_0", 32768)
HUGE = AvailableModel(
    "huge-70b", 40 * 2**30, "llama", 70 * 10**9, "Q4_K", 8192,
    problem="huge-70b does not fit in memory: it takes 40,000.0 MiB for its weights.",
)  # fmt: skip
