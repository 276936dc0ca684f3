"""Loading holds the packed weights and a few source pages, however large a matrix is."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

MIB = 1 << 20
HIDDEN, HEADS, FFN = 1024, 16, 64
VOCABULARY = 32_768
"""An embedding of 64 MiB in F16; all other weights take 9 MiB."""

SCRIPT = """
import sys
from pathlib import Path
from tests.parity.cached_loading import load

def held(key):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024

load(Path(sys.argv[1]), None).close()  # modules, and memory that the allocator keeps
Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
before = held("VmRSS")
executor = load(Path(sys.argv[2]), None)
print(held("VmHWM") - before - executor.info.weight_bytes)
"""


def write_model(directory: Path, vocab_size: int) -> Path:
    """A llama of one layer with F16 weights."""
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "vocab_size": vocab_size,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    }
    layer = "model.layers.0."
    shapes = {
        "model.embed_tokens.weight": (vocab_size, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        f"{layer}input_layernorm.weight": (HIDDEN,),
        f"{layer}post_attention_layernorm.weight": (HIDDEN,),
        **{f"{layer}self_attn.{part}_proj.weight": (HIDDEN, HIDDEN) for part in "qkvo"},
        f"{layer}mlp.gate_proj.weight": (FFN, HIDDEN),
        f"{layer}mlp.up_proj.weight": (FFN, HIDDEN),
        f"{layer}mlp.down_proj.weight": (HIDDEN, FFN),
    }
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    tensors = {name: np.full(shape, 0.01, np.float16) for name, shape in shapes.items()}
    save_file(tensors, directory / "model.safetensors")
    return directory


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_the_peak_of_a_load_is_the_packed_weights_and_some_megabytes(tmp_path):
    small = write_model(tmp_path / "small", 512)
    large = write_model(tmp_path / "large", VOCABULARY)
    command = [sys.executable, "-c", SCRIPT, str(small), str(large)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    # Two workers with 4 MiB of source pages each, and tables of the larger model.
    assert int(ran.stdout) < 32 * MIB
