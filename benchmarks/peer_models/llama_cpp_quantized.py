"""Writes a GGUF file in another format with llama.cpp's own quantizer.

    python llama_cpp_quantized.py SOURCE TARGET FORMAT    # in an environment with llama-cpp-python

FORMAT is one of llama.cpp's file types, such as Q4_K_M. SOURCE may be quantized itself. The target is created
atomically.
"""

import ctypes
import sys
from pathlib import Path

import llama_cpp as ll


@ll.llama_log_callback
def silent(level: int, text: bytes, data: object) -> None:
    """Drop the quantizer's messages, one per tensor."""


ll.llama_log_set(silent, None)
source, target, file_type = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
part = target.with_name(target.name + ".part")
params = ll.llama_model_quantize_default_params()
params.allow_requantize = True
params.ftype = getattr(ll, f"LLAMA_FTYPE_MOSTLY_{file_type.upper()}")
status = ll.llama_model_quantize(str(source).encode(), str(part).encode(), ctypes.byref(params))
if status:
    sys.exit(f"llama.cpp did not write {target}: status {status}")
part.replace(target)
