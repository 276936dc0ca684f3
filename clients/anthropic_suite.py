# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "anthropic[aiohttp]==2.14.0", "pytest==9.2.0", "pytest-asyncio==1.5.0", "respx==0.23.1", "rich==15.0.0",
#     "http-snapshot==0.1.9", "inline-snapshot==0.36.1", "nest-asyncio==1.6.0",
# ]
# [tool.pravaha]
# servers = ["scripted"]
# ///
"""The `anthropic` client's own tests of its messages and models, against a server: `anthropic_suite.py URL`.

As `openai_suite.py`; here models alone have to be named. Threads are taken out of the requests: the server
keeps none and says so, upon which the client sends the conversation itself (`anthropic_sdk.py`). Batches of
messages, files, skills and the like are not part of this server.
"""

import sys
from typing import Any

import anthropic
from agent_task import served_model
from sdk_suite import run_suite

RESOURCES = ("test_messages.py", "test_models.py", "beta/test_messages.py", "beta/test_models.py")


def main(url: str) -> int:
    model = served_model(url)

    def rewrite(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        body.pop("thread", None)
        return path.replace("/model_id", f"/{model}"), body

    return run_suite("anthropic", anthropic.__version__, RESOURCES, url, "", rewrite, {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))
