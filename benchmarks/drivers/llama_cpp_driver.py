"""llama.cpp through its Python binding.

Batches go through the C interface, many sequences a call, logits for the last token of each; tokens are
neither sampled nor turned into text, so its figures leave out what ours include. A shared prefix is
computed once in sequence 0 and its cells are given to all others.
"""

import time
from collections.abc import Iterator

import llama_cpp as ll
from orders import NotRunnable, Order, arguments, serve

BATCH = 2048
"""Tokens in a call; llama.cpp computes them 512 at a time."""
options = arguments()
llm = ll.Llama(
    str(options.model), n_ctx=options.max_tokens, n_threads=options.threads, verbose=False
)


def run(order: Order) -> float | None:
    if order.text:
        told = llm(order.text, max_tokens=order.new_tokens, temperature=0)
        if told["usage"]["completion_tokens"] != order.new_tokens:
            raise NotRunnable("the answer ended early")
        return None
    return batched(order)


def batched(order: Order) -> float:
    prompts, shared = order.prompts, order.shared_prefix
    streams = len(prompts)
    longest = max(map(len, prompts)) + order.new_tokens
    params = ll.llama_context_default_params()
    params.n_batch, params.n_ubatch, params.n_seq_max = BATCH, 512, streams
    params.n_threads = params.n_threads_batch = options.threads
    # Cells are shared within one buffer only; otherwise each sequence has its own.
    params.kv_unified = bool(shared)
    cells = (
        shared + streams * (longest - shared) if shared else streams * (-(-longest // 256) * 256)
    )
    params.n_ctx = -(-cells // 256) * 256
    context = ll.llama_init_from_model(llm._model.model, params)
    batch = ll.llama_batch_init(BATCH, 0, 1)
    if not context:
        raise NotRunnable(f"no context of {params.n_ctx} cells could be made")

    def decode(rows: list[tuple[int, int, int, bool]]) -> None:
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        if status := ll.llama_decode(context, batch):
            raise NotRunnable(f"llama_decode returned {status}")
        ll.llama_synchronize(context)

    def prefill(rows: Iterator[tuple[int, int, int, bool]]) -> None:
        every = list(rows)
        for begin in range(0, len(every), BATCH):
            decode(every[begin : begin + BATCH])

    try:
        start = time.perf_counter()
        if shared:
            prefill((token, at, 0, False) for at, token in enumerate(prompts[0][:shared]))
            memory = ll.llama_get_memory(context)
            for sequence in range(1, streams):
                ll.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
        prefill(
            (prompt[at], at, sequence, at == len(prompt) - 1)
            for sequence, prompt in enumerate(prompts)
            for at in range(shared, len(prompt))
        )
        # The prompt's last token gives the first new one.
        for step in range(order.new_tokens - 1):
            decode(
                [
                    (prompt[step % len(prompt)], len(prompt) + step, sequence, True)
                    for sequence, prompt in enumerate(prompts)
                ]
            )
        return time.perf_counter() - start
    finally:
        ll.llama_batch_free(batch)
        ll.llama_free(context)


name = options.model.stem.lower()
weights = next((w.upper() for w in ("q4_1", "q4_0", "q8_0") if w in name), "Q4_1")
serve({"engine": "llama.cpp", "version": ll.__version__, "weights": weights}, run)
