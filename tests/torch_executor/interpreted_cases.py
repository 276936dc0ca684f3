"""Runs all modules of kernel cases in one process; before the lines of each, a line with its name."""

import json

from tests.torch_executor import fused_cases, kernel_cases, wrong_fusion

if __name__ == "__main__":
    for module in (kernel_cases, fused_cases, wrong_fusion):  # the last leaves a wrong norm behind
        print(json.dumps(module.__name__.rpartition(".")[2]), flush=True)
        module.main()
