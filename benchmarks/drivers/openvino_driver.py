"""Driver of OpenVINO GenAI with continuous batching."""

import numpy as np
import openvino as ov
import openvino_genai as og
from orders import Order, arguments, serve

options = arguments()
scheduling = og.SchedulerConfig()
scheduling.cache_size = max(2, options.kv_tokens * 48 // 2**20)
scheduling.max_num_seqs, scheduling.max_num_batched_tokens = 64, 4096
scheduling.enable_prefix_caching = options.prefix_caching
pipe = og.ContinuousBatchingPipeline(
    str(options.model), scheduling, "CPU", {"INFERENCE_NUM_THREADS": options.threads}
)


def generate(prompts: list[list[int]], new_tokens: int) -> None:
    tensors = [ov.Tensor(np.array([prompt], dtype=np.int64)) for prompt in prompts]
    pipe.generate(tensors, [config(new_tokens)] * len(prompts))


def config(new_tokens: int) -> og.GenerationConfig:
    generation = og.GenerationConfig()
    generation.max_new_tokens = generation.min_new_tokens = new_tokens
    generation.ignore_eos, generation.do_sample, generation.apply_chat_template = True, False, False
    return generation


def run(order: Order) -> None:
    if order.text:
        pipe.generate([order.text], [config(order.new_tokens)])
        return
    if order.shared_prefix:
        # Prompts submitted together do not share blocks, so the prefix is computed in a first call.
        generate([order.prompts[0][: order.shared_prefix]], 1)
    generate(order.prompts, order.new_tokens)


weights = options.model.name.removeprefix("ov_").removesuffix(".gguf").rpartition("-")[2]
serve(
    {
        "engine": "openvino-genai",
        "version": og.__version__,
        "weights": weights,
        "threads": options.threads,
    },
    run,
)
