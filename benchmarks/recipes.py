"""The recipes of the compared engines: ours, and each peer in each of its weight formats."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.driven_engine import DRIVERS, OURS, Recipe

DEMO = "smollm2.gguf"
"""Our model, in the directory of the peers' models."""
FORMATS = {
    "llama_cpp": {
        "q4_0": "smollm2-q4_0.gguf",
        "q8_0": "smollm2-q8_0.gguf",
        "q4_k_m": "smollm2-q4_k_m.gguf",
        "q4_1": DEMO,
    },
    "openvino": {"int8": "ov_int8", "int4": "ov_int4"},
    "vllm_cpu": {"bf16": "smollm2_bf16"},
    "transformers": {"bf16": "smollm2_bf16"},
}
"""Peer → weight format → model file or directory, as `peers_setup.sh` creates them.

Which format is a peer's fastest depends on the machine and on the number of streams, so all are measured.
"""


def our_recipe(model: Path, *flags: str, label: str = "") -> Recipe:
    """The recipe of this checkout's engine."""
    return Recipe(OURS, Path(sys.executable), model, flags, label)


def peer_recipe(peer: str, directory: Path, model: Path, *flags: str) -> Recipe:
    """The recipe of a peer with a model in the peer's format."""
    script = DRIVERS / f"{peer}_driver.py"
    return Recipe(script, directory / peer / "bin" / "python", model, flags)


def peer_recipes(
    peer: str, directory: Path, *flags: str, formats: Sequence[str] = ()
) -> list[Recipe]:
    """The recipes of a peer with the demo model: one per format.

    Args:
        peer: a key of `FORMATS`.
        directory: directory of the peers.
        flags: further arguments of the driver.
        formats: the formats wanted; empty for all.
    """
    return [
        peer_recipe(peer, directory, directory / "models" / model, *flags)
        for name, model in FORMATS[peer].items()
        if not formats or name in formats
    ]
