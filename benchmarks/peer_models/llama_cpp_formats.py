"""Writes the demo model in llama.cpp's other formats with its own quantizer, and runs each once.

    python llama_cpp_formats.py MODELS    # in an environment with llama-cpp-python

llama.cpp has repacked kernels for Q4_0, Q8_0 and Q4_K, and none for Q4_1, the demo model's format.
A kernel that this machine cannot run ends the process here, at installation.
"""

import ctypes
import sys
from pathlib import Path

import llama_cpp as ll

FORMATS = {
    "q4_0": ll.LLAMA_FTYPE_MOSTLY_Q4_0,
    "q8_0": ll.LLAMA_FTYPE_MOSTLY_Q8_0,
    "q4_k_m": ll.LLAMA_FTYPE_MOSTLY_Q4_K_M,
}


@ll.llama_log_callback
def silent(level: int, text: bytes, data: object) -> None:
    """Drop the quantizer's messages, one per tensor."""


ll.llama_log_set(silent, None)
models = Path(sys.argv[1])
source = models / "smollm2.gguf"
for name, file_type in FORMATS.items():
    target = models / f"smollm2-{name}.gguf"
    if not target.exists():
        part = target.with_name(target.name + ".part")
        params = ll.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = file_type, True
        status = ll.llama_model_quantize(
            str(source).encode(), str(part).encode(), ctypes.byref(params)
        )
        if status:
            sys.exit(f"llama.cpp did not write {target}: status {status}")
        part.replace(target)
    ll.Llama(str(target), n_ctx=256, verbose=False)("one two three four" * 16, max_tokens=4)
