"""Loads a model whose fused norms pass their own check and are wrong in the model: see `test_fused`."""

import json
import logging
import tempfile
from pathlib import Path

import torch

from engine.executors.torch.fused_norm import FusedRmsNorm
from tests.fakes.tiny_transformers import greedy, save_tiny, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.fused_cases import fused_parts
from tests.torch_executor.loaded import load_torch, stepper


def main():
    torch.set_num_threads(1)
    right = FusedRmsNorm.forward

    def wrong_for_more_than_three_rows(self, hidden_states):
        normed = right(self, hidden_states)
        return normed if hidden_states.numel() == 3 * len(self.weight) else normed * 2

    FusedRmsNorm.forward = wrong_for_more_than_three_rows
    records = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append
    logging.getLogger("engine").addHandler(handler)
    model = tiny_hf_model("llama")
    with tempfile.TemporaryDirectory() as directory:
        executor = load_torch(save_tiny(Path(directory), model), device="cpu", attention="triton")
    run = Run([5, 6, 7], 2)
    stepper(executor).run([run])
    found = {
        "fused": sum(fused_parts(executor._model).values()),
        "wrong": int(run.tokens != greedy(model, run.prompt, 2)),
        "warnings": sum("without fused kernels" in record.getMessage() for record in records),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
