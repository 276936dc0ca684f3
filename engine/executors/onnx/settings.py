"""Settings of the ONNX executor: its KV type, and settings it does not support. Imports no ONNX Runtime."""

from engine.api.config import EngineConfig, KvDtype
from engine.api.errors import ModelError
from engine.models.onnx_spec import OnnxSpec


def onnx_kv_dtype(kv_dtype: KvDtype, spec: OnnxSpec) -> KvDtype:
    """Element type of the KV cache, which is that of the graph's inputs.

    Raises:
        ModelError: another type is set.
    """
    if kv_dtype in ("auto", spec.kv_dtype):
        return spec.kv_dtype
    raise ModelError(
        f"The graph of this {spec.architecture} model keeps keys and values in {spec.kv_dtype}: kv_dtype "
        f"{kv_dtype} is not possible."
    )


def reject_settings(config: EngineConfig) -> None:
    """Reject settings that other executors support.

    Raises:
        ModelError: naming the first such setting.
    """
    other = {
        f"weights {config.weights}": config.weights != "stored",
        f"dispatch {config.dispatch}": config.dispatch != "auto",
        "device cuda": config.device == "cuda",
        f"dtype {config.dtype}": config.dtype != "auto",
        f"attention {config.attention}": config.attention != "auto",
        "cuda_graphs": config.cuda_graphs,
        "dummy_weights": config.dummy_weights,
    }
    for name, given in other.items():
        if given:
            raise ModelError(
                f"{name} is of another executor, but this model is in ONNX: leave it out."
            )
