"""Driver of llama.cpp's server: HTTP, prompt cache on, `--slots` concurrent requests.

The server's binary is `build/bin/llama-server` beside the interpreter's virtual environment
(`peers_setup.sh`). Prompts are token ids. With a shared prefix and several slots the prefix is requested
first, so that the server may copy its state to the other slots (`--cache-ram`); with one slot the slot
itself keeps it.
"""

import atexit
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from orders import Order, arguments, serve

options = arguments()
binary = Path(sys.prefix) / "build" / "bin" / "llama-server"
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
url = f"http://127.0.0.1:{port}"
command = [
    binary,
    *("--model", options.model, "--host", "127.0.0.1", "--port", str(port)),
    *("--threads", str(options.threads), "--threads-batch", str(options.threads)),
    *("--parallel", str(options.slots), "--ctx-size", str(options.kv_tokens)),
    *("--batch-size", "2048", "--cache-prompt", "--cont-batching", "--no-warmup", "--no-webui"),
]
server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
atexit.register(server.kill)
threads = ThreadPoolExecutor(options.slots)


def wait_ready() -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"llama-server ended with status {server.returncode}")


def complete(prompt: list[int], new_tokens: int) -> None:
    body = {
        "prompt": prompt,
        "n_predict": new_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": True,
    }
    request = urllib.request.Request(
        f"{url}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=3600) as response:
        done = json.load(response)
    if done["tokens_predicted"] != new_tokens:
        raise RuntimeError(f"got {done['tokens_predicted']} of {new_tokens} tokens")


def run(order: Order) -> None:
    if order.shared_prefix and options.slots > 1:
        complete(order.prompts[0][: order.shared_prefix], 1)
    list(threads.map(lambda prompt: complete(prompt, order.new_tokens), order.prompts))


wait_ready()
told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
serve(
    {
        "engine": "llama.cpp server",
        "version": (told.stderr or told.stdout).splitlines()[0],
        "weights": options.model.stem.removeprefix("smollm2-"),
        "threads": options.threads,
    },
    run,
)
