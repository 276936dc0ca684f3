"""Driver of mistral.rs, through its Python package; it reads GGUF files.

Prompts are given as text, since its requests take no token ids: random tokens are decoded first, and may be
a few more or less when it encodes them again. Its prefix cache is on or off as a whole.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from orders import NotRunnable, Order, arguments, serve

options = arguments()
os.environ["RAYON_NUM_THREADS"] = str(options.threads)

import mistralrs  # noqa: E402  it counts its threads when it is loaded

MAX_STREAMS = 64
runner = mistralrs.Runner(
    which=mistralrs.Which.GGUF(
        quantized_model_id=str(options.model.parent), quantized_filename=options.model.name
    ),
    max_seqs=MAX_STREAMS,
    prefix_cache_n=MAX_STREAMS if options.prefix_caching else 0,
)


def generate(prompt: str, new_tokens: int) -> None:
    request = mistralrs.CompletionRequest(
        prompt, model="default", max_tokens=new_tokens, temperature=0.0, ignore_eos=True
    )
    made = runner.send_completion_request(request).usage.completion_tokens
    if made != new_tokens:
        raise NotRunnable(f"{made} of {new_tokens} tokens were generated")


def run(order: Order) -> None:
    texts = order.prompts and [runner.detokenize_text(one, False) for one in order.prompts]
    with ThreadPoolExecutor(len(texts) or 1) as threads:
        list(threads.map(lambda text: generate(text, order.new_tokens), texts or [order.text]))


serve(
    {
        "engine": "mistral.rs",
        "version": version("mistralrs"),
        "weights": options.model.stem.rpartition("-")[2].upper(),
        "threads": options.threads,
    },
    run,
)
