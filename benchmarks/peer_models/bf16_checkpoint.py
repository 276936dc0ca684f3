"""Writes the demo model's GGUF file as a bf16 checkpoint, so that every engine has the same weights.

python bf16_checkpoint.py MODELS    # in an environment with torch, transformers and gguf
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

models = Path(sys.argv[1])
target = models / "smollm2_bf16"
model = AutoModelForCausalLM.from_pretrained(
    models, gguf_file="smollm2.gguf", dtype=torch.float32
).to(torch.bfloat16)
# transformers takes a dequantized model for a quantized one and would not save it.
del model.config.quantization_config
model.is_quantized, model.hf_quantizer = False, None
model.config.rope_theta = 100000.0
model.save_pretrained(target)
AutoTokenizer.from_pretrained(models, gguf_file="smollm2.gguf").save_pretrained(target)
