"""Writes a GGUF file of a Llama as a bf16 checkpoint, so that every engine has the same weights.

python bf16_checkpoint.py GGUF TARGET    # in an environment with torch, transformers and gguf
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

source, target = Path(sys.argv[1]), Path(sys.argv[2])
model = AutoModelForCausalLM.from_pretrained(
    source.parent, gguf_file=source.name, dtype=torch.float32
).to(torch.bfloat16)
# transformers takes a dequantized model for a quantized one and would not save it.
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.is_quantized, model.hf_quantizer = False, None
model.config.rope_theta = model.config.rope_parameters["rope_theta"]
model.save_pretrained(target)
AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)
