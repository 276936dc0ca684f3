"""Driver of llama.cpp, through its Python binding.

Everything uses the C API, since the binding's own completion loop costs time per token. *single* samples
greedily, past end-of-sequence, and detokenizes at the end. Batches have many sequences per call and logits
for the last token of each; their tokens are neither sampled nor detokenized, so the figures exclude work
that ours include. A shared prefix is computed
once in sequence 0 and its cells are copied to the other sequences. With prefix caching the last batch's
context is kept, and only the last token of prompts that it contains is computed again. Tokens of recurrent
models cannot be removed, nor those of windows that have moved on: of such models each sequence is saved
before its last token, and restored.

Settings are llama.cpp's defaults: flash attention (`auto`, which enables it on a CPU), repacked weights,
KV in f16, micro-batches of 512 tokens; layers with a window keep its tokens only, as in llama.cpp's
programs. `--flash-attention off` decodes long contexts faster, and `--kv-dtype int8` stores KV in Q8_0.
Weights are mapped from the file, and repacked formats are copied beside it; `--no-mmap` reads the file into
memory instead, which takes longer and holds no tensor twice.
"""

import ctypes
import sys
import time
from collections.abc import Iterator

import llama_cpp as ll
from llama_cpp._internals import LlamaModel
from orders import NotRunnable, Order, arguments, serve

CALL = 2048
"""Maximum number of tokens per call; llama.cpp computes them 512 at a time."""
UBATCH = 512
KV_TYPES = {"auto": "f16", "f16": "f16", "int8": "q8_0"}
FLASH_ATTENTION = {
    "auto": ll.LLAMA_FLASH_ATTN_TYPE_AUTO,
    "on": ll.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": ll.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}
ERROR = 4
"""GGML_LOG_LEVEL_ERROR."""
Row = tuple[int, int, int, bool]
"""Token, position, sequence, and whether its logits are needed."""


@ll.llama_log_callback
def errors_only(level: int, text: bytes, data: object) -> None:
    """Keep standard error for the reason of a failure."""
    if level == ERROR:
        sys.stderr.write(text.decode())


options = arguments()
kv_type = KV_TYPES[options.kv_dtype]
ll.llama_backend_init()
ll.llama_log_set(errors_only, None)
loading = ll.llama_model_default_params()
if options.no_mmap:
    loading.load_mode = ll.LLAMA_LOAD_MODE_NONE
# Not `ll.Llama`, which would also hold a context of its own.
model = LlamaModel(path_model=str(options.model), params=loading, verbose=False)


class Sequences:
    """A llama.cpp context with one sequence per prompt."""

    def __init__(self, prompts: list[list[int]], new_tokens: int, shared: int) -> None:
        self.prompts, self.room = prompts, max(map(len, prompts)) + max(new_tokens, 64)
        params = ll.llama_context_default_params()
        params.n_batch, params.n_ubatch, params.n_seq_max = CALL, UBATCH, len(prompts)
        params.n_threads = params.n_threads_batch = options.threads
        params.type_k = params.type_v = getattr(ll, f"GGML_TYPE_{kv_type.upper()}")
        params.flash_attn_type = FLASH_ATTENTION[options.flash_attention]
        params.swa_full = False
        # Sequences can share cells only in a unified buffer; otherwise each has its own buffer.
        params.kv_unified = bool(shared)
        each = -(-self.room // 256) * 256
        cells = shared + len(prompts) * (self.room - shared) if shared else len(prompts) * each
        params.n_ctx = -(-cells // 256) * 256
        self.context = ll.llama_init_from_model(model.model, params)
        if not self.context:
            raise NotRunnable(f"a context of {params.n_ctx} cells could not be created")
        self._batch = ll.llama_batch_init(CALL, 0, 1)
        self._saved: list[ctypes.Array[ctypes.c_uint8]] = []
        self.memory = ll.llama_get_memory(self.context)

    def decode(self, rows: Iterator[Row]) -> None:
        """Compute tokens, in calls of at most `CALL` tokens."""
        every, batch = list(rows), self._batch
        for begin in range(0, len(every), CALL):
            part = every[begin : begin + CALL]
            batch.n_tokens = len(part)
            for i, (token, position, sequence, wanted) in enumerate(part):
                batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
            if status := ll.llama_decode(self.context, batch):
                raise NotRunnable(f"llama_decode returned {status}")
            ll.llama_synchronize(self.context)

    def holds(self, order: Order) -> bool:
        """Whether the order's prompts are the first prompts of this context and their outputs fit."""
        longest = max(map(len, order.prompts)) + order.new_tokens
        return self.prompts[: len(order.prompts)] == order.prompts and longest <= self.room

    def save(self) -> None:
        """Save each sequence."""
        for sequence in range(len(self.prompts)):
            size = ll.llama_state_seq_get_size(self.context, sequence)
            saved = (ctypes.c_uint8 * size)()
            ll.llama_state_seq_get_data(self.context, saved, size, sequence)
            self._saved.append(saved)

    def cut(self, sequence: int, length: int) -> None:
        """Remove the tokens from `length` on, or restore what was saved at that length."""
        if not self._saved:
            ll.llama_memory_seq_rm(self.memory, sequence, length, -1)
            return
        ll.llama_memory_seq_rm(self.memory, sequence, -1, -1)
        saved = self._saved[sequence]
        if not ll.llama_state_seq_set_data(self.context, saved, len(saved), sequence):
            raise NotRunnable("a saved sequence could not be restored")

    def close(self) -> None:
        """Free the context."""
        ll.llama_batch_free(self._batch)
        ll.llama_free(self.context)


kept: Sequences | None = None
cannot_cut = (
    ll.llama_model_is_recurrent(model.model)
    or ll.llama_model_is_hybrid(model.model)
    or ll.llama_model_n_swa(model.model) > 0
)


def run(order: Order) -> float:
    return single(order) if order.text else batched(order)


def single(order: Order) -> float:
    """Generate from a text, with its tokenization, sampling and detokenization."""
    sequences = Sequences([[0] * len(order.text)], order.new_tokens, shared=0)
    greedy = ll.llama_sampler_init_greedy()
    start = time.perf_counter()
    prompt = model.tokenize(order.text.encode(), add_bos=False, special=True)
    sequences.decode((token, at, 0, at == len(prompt) - 1) for at, token in enumerate(prompt))
    new = [ll.llama_sampler_sample(greedy, sequences.context, -1)]
    while len(new) < order.new_tokens:
        sequences.decode(iter([(new[-1], len(prompt) + len(new) - 1, 0, True)]))
        new.append(ll.llama_sampler_sample(greedy, sequences.context, -1))
    model.detokenize(new)
    taken = time.perf_counter() - start
    ll.llama_sampler_free(greedy)
    sequences.close()
    return taken


def batched(order: Order) -> float:
    global kept
    if options.prefix_caching and kept and kept.holds(order):
        return generate(kept, order, found=True)
    if kept:
        kept.close()
    kept = Sequences(order.prompts, order.new_tokens, order.shared_prefix)
    return generate(kept, order, found=False)


def generate(sequences: Sequences, order: Order, *, found: bool) -> float:
    prompts, shared = order.prompts, order.shared_prefix
    if found:
        for sequence, prompt in enumerate(prompts):
            sequences.cut(sequence, len(prompt) - 1)
    start = time.perf_counter()
    if shared and not found:
        sequences.decode((token, at, 0, False) for at, token in enumerate(prompts[0][:shared]))
        for sequence in range(1, len(prompts)):
            ll.llama_memory_seq_cp(sequences.memory, 0, sequence, -1, -1)
    if options.prefix_caching and cannot_cut and not found:
        prefill(sequences, [range(shared, len(prompt) - 1) for prompt in prompts])
        # The last tokens' step is not counted either: alone it takes longer than its share of a prefill.
        pause = time.perf_counter()
        sequences.save()
        prefill(sequences, [range(len(prompt) - 1, len(prompt)) for prompt in prompts])
        start += time.perf_counter() - pause
    else:
        every = [range(len(prompt) - 1 if found else shared, len(prompt)) for prompt in prompts]
        prefill(sequences, every)
    # The prefill produces the first new token.
    for step in range(order.new_tokens - 1):
        sequences.decode(
            (prompt[step % len(prompt)], len(prompt) + step, sequence, True)
            for sequence, prompt in enumerate(prompts)
        )
    return time.perf_counter() - start


def prefill(sequences: Sequences, places: list[range]) -> None:
    """Compute some tokens of each prompt, with logits for its last one."""
    sequences.decode(
        (prompt[at], at, sequence, at == len(prompt) - 1)
        for sequence, (prompt, wanted) in enumerate(zip(sequences.prompts, places, strict=False))
        for at in wanted
    )


def weights() -> str:
    """The file's weight format, such as Q4_0; the description is "llama 135M Q4_0" or "… Q4_K - Medium"."""
    description = ctypes.create_string_buffer(128)
    ll.llama_model_desc(model.model, description, 128)
    name, _, size = description.value.decode().split(maxsplit=2)[2].partition(" - ")
    return f"{name}_{size[0]}" if size else name


serve(
    {
        "engine": "llama.cpp",
        "version": ll.__version__,
        "weights": weights(),
        "kv_dtype": kv_type,
        "threads": options.threads,
        "settings": {
            "flash_attention": options.flash_attention,
            "n_ubatch": UBATCH,
            "mmap": not options.no_mmap,
        },
        "build": ll.llama_print_system_info().decode(),
    },
    run,
)
