"""Greedy tokens of llama.cpp beside ours, on the tiny random models of the tests as GGUF files in fp32.

    python benchmarks/llama_cpp_tokens.py --server PATH/TO/llama-server [--only NAME,NAME]

Each model answers three prompts of random token ids. A line says whether all tokens are equal, or the first
that is not, with the margin between the two best logits of transformers there: a small one means rounding.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import torch
from transformers import PreTrainedModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.llama_server import llama_server
from tests.parity.expert_gguf import write_expert_gguf
from tests.parity.family_gguf import write_family_gguf
from tests.parity.loading import load_stepper
from tests.parity.recurrent_gguf import write_recurrent_gguf
from tests.parity.reference import answer_logits
from tests.parity.stepper import Run
from tests.parity.test_family_gguf import CASES, architecture_of
from tests.parity.test_recurrent_models import IN_GGUF
from tests.parity.tiny_models import TinyModel, save_tiny_model

PROMPTS, TOKENS = (33, 90, 150), 24
OPTIONS = ("-c", "256", "-np", "1", "-ctk", "f32", "-ctv", "f32", "-t", "1", "-fa", "off")
FIRST_ORDINARY = 3
"""Ids below are control tokens."""


Writer = Callable[[Path], PreTrainedModel]
"""Writes a GGUF file, and returns the model of the same weights."""


def writers() -> dict[str, Writer]:
    """One for each model that can be written, by its name."""
    families = {tiny.name: partial(_write_family, tiny) for tiny in CASES}
    recurrent = {tiny.name: partial(_write_recurrent, tiny) for tiny in IN_GGUF}
    experts = {name: partial(_write_experts, name) for name in ("qwen3moe", "gpt-oss")}
    return families | recurrent | experts


def _write_family(tiny: TinyModel, path: Path) -> PreTrainedModel:
    model = save_tiny_model(tiny, path.parent / "checkpoint", torch.float32)
    write_family_gguf(path, architecture_of(tiny), model)
    return model


def _write_recurrent(tiny: TinyModel, path: Path) -> PreTrainedModel:
    model = save_tiny_model(tiny, path.parent / "checkpoint", torch.float32)
    write_recurrent_gguf(model, path, extra_blocks=0)
    return model


def _write_experts(architecture: str, path: Path) -> PreTrainedModel:
    return write_expert_gguf(path, architecture, "F32")


def theirs(url: str, prompt: list[int]) -> list[int]:
    """llama.cpp's greedy tokens, up to the end of its answer."""
    body = {
        "prompt": prompt,
        "n_predict": TOKENS,
        "temperature": 0,
        "return_tokens": True,
        "cache_prompt": False,
    }
    answer = httpx.post(f"{url}/completion", json=body, timeout=120)
    answer.raise_for_status()
    return [int(token) for token in answer.json()["tokens"]]


def compare(write: Writer, server: Path, path: Path) -> str:
    """What the tokens of the two engines have in common, in a phrase."""
    model = write(path)
    rng, vocab = np.random.default_rng(1), model.config.get_text_config().vocab_size
    runs = [Run(rng.integers(FIRST_ORDINARY, vocab, n).tolist(), TOKENS) for n in PROMPTS]
    stepper = load_stepper(path, block_size=16, rows=len(runs))
    stepper.run(runs)
    stepper.executor.close()
    try:
        with llama_server(server, path, *OPTIONS) as url:
            answers = [theirs(url, run.prompt) for run in runs]
    except (RuntimeError, httpx.HTTPError) as error:
        return f"not run: {error}"
    found = [difference(model, run, answer) for run, answer in zip(runs, answers, strict=True)]
    compared = sum(map(len, answers))
    return "; ".join(filter(None, found)) or f"equal ({compared} tokens)"


def difference(model: PreTrainedModel, run: Run, answer: list[int]) -> str:
    """Where an answer is not ours; empty if it is."""
    for at, (token, other) in enumerate(zip(run.tokens, answer, strict=False)):
        if token != other:
            best = np.sort(answer_logits(model, run.prompt, run.tokens[: at + 1])[at])[-2:]
            return f"differs at token {at} (margin {best[1] - best[0]:.3f})"
    return ""


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--only", default="", help="names of models, by default all")
    options = parser.parse_args()
    only = {name for name in options.only.split(",") if name}
    for name, write in writers().items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = compare(write, options.server, Path(folder) / "tiny.gguf")
        print(f"{name}: {result}", flush=True)


if __name__ == "__main__":
    main()
