"""ONNX Runtime: embedding alone, in fp32 or with its dynamic int8 quantization."""

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
from calls import DIMENSIONS, Peer, serve
from numpy.typing import NDArray
from options import options
from padded_batches import PaddedBatches, pooled

settings = options()
session_options = ort.SessionOptions()
session_options.intra_op_num_threads = settings.threads
model = "minilm.onnx" if settings.weights == "f32" else "minilm_int8.onnx"
session = ort.InferenceSession(
    str(settings.models / model), session_options, providers=["CPUExecutionProvider"]
)
batches = PaddedBatches(settings.models / "minilm")


class OnnxRuntimePeer(Peer):
    """All graph optimizations, the default."""

    name = f"ONNX Runtime {settings.weights}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for places, inputs in batches.of(texts):
            (states,) = session.run(None, inputs)
            vectors[places] = pooled(states, inputs["attention_mask"])
        return vectors


serve(OnnxRuntimePeer(), ort.__version__)
