"""The files of a synthetic shape in the formats of llama.cpp and OpenVINO, made by their own tools."""

import subprocess
from pathlib import Path

from benchmarks.driven_process import ProcessFailed
from benchmarks.machine import say
from benchmarks.recipes import DEMO
from benchmarks.synthetic_models import Shape, synthetic_model

PEER_MODELS = Path(__file__).parent / "peer_models"
GROUP_SIZE = "64"
"""Weights with one scale in OpenVINO's int4, as for the demo model."""


def quantized(shape: Shape, file_type: str, directory: Path, cache: Path) -> Path:
    """The shape's GGUF file in a format, made by llama.cpp's quantizer if it does not exist.

    Args:
        shape: the model's shape.
        file_type: llama.cpp's name of the format, such as q4_k_m.
        directory: directory of the peers.
        cache: directory of the synthetic models.
    """
    target = cache / f"synthetic-{shape.family}-{shape.name}-{file_type}.gguf"
    if not target.exists():
        say(f"creating {target.name}")
        source = synthetic_model(shape, directory / "models" / DEMO, cache, "f16")
        quantize(source, target, file_type, directory)
    return target


def quantize(source: Path, target: Path, file_type: str, directory: Path) -> None:
    """Write a GGUF file in another format, by llama.cpp's quantizer in the directory of the peers."""
    python = directory / "llama_cpp" / "bin" / "python"
    script = PEER_MODELS / "llama_cpp_quantized.py"
    subprocess.run([python, script, source, target, file_type], check=True)


def exported(shape: Shape, weights: str, directory: Path, cache: Path) -> Path:
    """The shape's folder for OpenVINO in int4 or int8, exported by optimum-intel if it does not exist.

    The shape's F16 file is written as a bf16 checkpoint first, by transformers.

    Raises:
        ProcessFailed: one of both is not installed in `directory`, or failed.
    """
    target = cache / f"ov_synthetic-{shape.family}-{shape.name}-{weights}"
    if target.exists():
        return target
    say(f"creating {target.name}")
    source = synthetic_model(shape, directory / "models" / DEMO, cache, "f16")
    checkpoint = source.with_name(source.name.replace("-f16.gguf", "-bf16"))
    part = target.with_name(target.name + ".part")
    export = [str(directory / "openvino" / "bin" / "optimum-cli"), "export", "openvino"]
    export += ["--task", "text-generation-with-past", "--weight-format", weights]
    export += ["--group-size", GROUP_SIZE] if weights == "int4" else []
    try:
        if not (checkpoint / "tokenizer.json").exists():
            python = directory / "transformers" / "bin" / "python"
            script = PEER_MODELS / "bf16_checkpoint.py"
            subprocess.run([python, script, source, checkpoint], check=True)
        subprocess.run([*export, "-m", checkpoint, part], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ProcessFailed(f"{target.name} cannot be made: {error}") from None
    return part.rename(target)
