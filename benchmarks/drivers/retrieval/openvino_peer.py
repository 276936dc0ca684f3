"""OpenVINO: embedding alone, in fp32 or int8, with the throughput hint and a queue of requests."""

from collections.abc import Sequence

import numpy as np
import openvino as ov
from calls import DIMENSIONS, Peer, serve
from numpy.typing import NDArray
from options import options
from padded_batches import PaddedBatches, pooled

settings = options()
folder = "minilm_ov" if settings.weights == "f32" else "minilm_ov_int8"
compiled = ov.Core().compile_model(
    settings.models / folder / "model.xml",
    "CPU",
    {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_NUM_THREADS": settings.threads},
)
batches = PaddedBatches(settings.models / "minilm")


class OpenVinoPeer(Peer):
    """Requests run at once, as many as OpenVINO recommends."""

    name = f"OpenVINO {settings.weights}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)

        def done(request: ov.InferRequest, given: tuple[list[int], NDArray[np.int64]]) -> None:
            places, mask = given
            vectors[places] = pooled(request.get_output_tensor().data, mask)

        queue = ov.AsyncInferQueue(compiled)
        queue.set_callback(done)
        for places, inputs in batches.of(texts):
            queue.start_async(inputs, (places, inputs["attention_mask"]))
        queue.wait_all()
        return vectors


serve(OpenVinoPeer(), ov.__version__)
