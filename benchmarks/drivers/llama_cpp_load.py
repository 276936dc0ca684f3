"""Loads a model once with llama.cpp, mapped as by default; prints its seconds as JSON.

    python benchmarks/drivers/llama_cpp_load.py --model FILE --threads N --prompt TOKENS --steps N

`weights`: loading the model and making a context; `first_token`: from then to the first sampled token of a
prompt; `step`: the fastest decode step after it.
"""

import argparse
import ctypes
import json
import time

import llama_cpp as ll

parser = argparse.ArgumentParser()
for name in ("--model", "--threads", "--prompt", "--steps"):
    parser.add_argument(name, required=True)
options = parser.parse_args()
threads, prompt = int(options.threads), int(options.prompt)

quiet = ll.llama_log_callback(lambda level, text, user: None)
ll.llama_log_set(quiet, ctypes.c_void_p(0))
ll.llama_backend_init()
begin = time.perf_counter()
model = ll.llama_model_load_from_file(options.model.encode(), ll.llama_model_default_params())
settings = ll.llama_context_default_params()
settings.n_ctx, settings.n_threads, settings.n_threads_batch = 1024, threads, threads
context = ll.llama_init_from_model(model, settings)
loaded = time.perf_counter()
greedy = ll.llama_sampler_init_greedy()


def decode(tokens: list[int]) -> int:
    """Compute the tokens and sample the next one."""
    given = (ll.llama_token * len(tokens))(*tokens)  # the batch only points to it
    batch = ll.llama_batch_get_one(given, len(tokens))
    if status := ll.llama_decode(context, batch):
        raise SystemExit(f"llama_decode returned {status}")
    return ll.llama_sampler_sample(greedy, context, -1)


token = decode(list(range(100, 100 + prompt)))
first = time.perf_counter()
fastest = float("inf")
for _ in range(int(options.steps)):
    start = time.perf_counter()
    token = decode([token])
    fastest = min(fastest, time.perf_counter() - start)
print(
    json.dumps(
        {
            "version": ll.__version__,
            "weights": loaded - begin,
            "first_token": first - loaded,
            "step": fastest,
        }
    )
)
