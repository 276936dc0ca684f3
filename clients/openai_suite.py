# /// script
# requires-python = ">=3.11"
# dependencies = ["openai[aiohttp]==3.57.0", "pytest==9.2.0", "pytest-asyncio==1.5.0", "rich==15.0.0"]
# [tool.pravaha]
# servers = ["scripted"]
# ///
"""The `openai` client's own tests of its resources, against a server: `python openai_suite.py URL`.

The tests are written for a stand-in that answers the examples of OpenAI's API description, so their requests
name things that exist nowhere (`conv_123`). `Examples` makes each thing before the request that
names it: every test reads, changes or deletes a real one. The answers are the server's, and the tests compare
their types with the client's own, loosely and strictly.

Values of examples that no server can take, such as `limit: 0`, are replaced. What remains unanswered is in
`EXPECTED_FAILURES`.
"""

import re
import sys
from functools import cached_property
from typing import Any

import openai
from openai import OpenAI
from sdk_suite import run_suite

RESOURCES = (
    "chat", "test_completions.py", "test_decisions.py", "test_embeddings.py", "test_models.py",
    "test_responses.py", "responses", "test_conversations.py", "conversations", "test_files.py",
    "test_uploads.py", "test_vector_stores.py", "vector_stores",
)  # fmt: skip
EMBEDDING_MODEL = "minilm"
CONTENT = b"Hello."
LEAST = {"max_tokens": 1, "best_of": 1, "max_completion_tokens": 1}
"""Fields whose value is 0 in examples."""
NO_QUERY = ("limit=0", "after=after", "before=before")
EXPECTED_FAILURES = {
    r"chat/completions/test_messages::.*_list.*": "answers of chats are not kept; Responses are",
    r"chat/test_completions::.*_(retrieve|update|list|delete)(_with_all_params)?": "as above",
    r"chat/test_completions::test_method_create_with_all_params_.*": "no moderation, no search of the web",
    r"test_completions::test_method_create_with_all_params_.*": "the scripted model has no `suffix`",
    r"test_models::.*_delete": "a model is not deleted by this API",
    r"test_embeddings::.*_create": "the client asks for base64, and is strict before it decodes",
    r"test_responses::test_method_create_with_all_params_.*": "there are no stored prompts",
    r"test_vector_stores::test_method_search_with_all_params": "queries are not rewritten",
}
"""Names of tests, as patterns, and why they fail. Only ever gets shorter."""


class Examples:
    """What the examples of one request name, made when it is asked for."""

    def __init__(self, client: OpenAI, path: str) -> None:
        self._client = client
        self._in_background = path.endswith("/cancel") or "stream=true" in path

    @cached_property
    def model(self) -> str:
        """The model's name."""
        return self._client.models.list().data[0].id

    @cached_property
    def conversation(self) -> str:
        """A conversation with one message."""
        item = {"type": "message", "role": "user", "content": "Hello."}
        return self._client.conversations.create(items=[item]).id

    @cached_property
    def item(self) -> str:
        """Its message."""
        return self._client.conversations.items.list(self.conversation).data[0].id

    @cached_property
    def response(self) -> str:
        """A response, in the background if only such a one will do."""
        fields = {"input": "Hello.", "max_output_tokens": 16, "background": self._in_background}
        return self._client.responses.create(model=self.model, **fields).id

    @cached_property
    def file(self) -> str:
        """A file."""
        return self._client.files.create(file=("a.txt", CONTENT), purpose="assistants").id

    @cached_property
    def vector_store(self) -> str:
        """An empty vector store."""
        return self._client.vector_stores.create().id

    @cached_property
    def batch(self) -> str:
        """A batch with the file, in the vector store."""
        batches = self._client.vector_stores.file_batches
        return batches.create(self.vector_store, file_ids=[self.file]).id

    @cached_property
    def upload(self) -> str:
        """An upload that is not complete."""
        fields = {"bytes": len(CONTENT), "filename": "a.txt", "mime_type": "text/plain"}
        return self._client.uploads.create(purpose="assistants", **fields).id

    @cached_property
    def part(self) -> str:
        """All of its content."""
        return self._client.uploads.parts.create(self.upload, data=CONTENT).id

    def index_file(self) -> None:
        """Put the file into the vector store."""
        files = self._client.vector_stores.files
        files.create_and_poll(self.file, vector_store_id=self.vector_store, poll_interval_ms=10)


NAMES = {
    "model": re.compile(r"model|gpt-6-astra|gpt-3\.5-turbo-instruct"),
    "conversation": re.compile(r"conv_123"),
    "item": re.compile(r"msg_abc"),
    "response": re.compile(r"resp_\w+|response_id|previous_response_id"),
    "file": re.compile(r"file_id|file-abc123"),
    "vector_store": re.compile(r"vs_abc123|vector_store_id"),
    "batch": re.compile(r"vsfb_abc123|batch_id"),
    "upload": re.compile(r"upload_abc123"),
}
"""The examples by the attribute of `Examples` that stands for them."""


def real(value: Any, examples: Examples) -> Any:
    """A value with real names in place of the examples."""
    if isinstance(value, dict):
        return {key: real(one, examples) for key, one in value.items()}
    if isinstance(value, list):
        return [real(one, examples) for one in value]
    if isinstance(value, str):
        for attribute, name in NAMES.items():
            if name.fullmatch(value):
                return getattr(examples, attribute)
    return value


def real_path(path: str, examples: Examples) -> str:
    """A path with real names, and a query without what no server can answer."""
    path, _, query = path.partition("?")
    in_store = re.search(r"/vector_stores/[^/]+/files/[^/]+", path) is not None
    path = "/".join(real(part, examples) for part in path.split("/"))
    if in_store:
        examples.index_file()
    query = "&".join(one for one in query.split("&") if one and one not in NO_QUERY)
    return f"{path}?{query}" if query else path


def real_body(path: str, body: dict[str, Any], examples: Examples) -> dict[str, Any]:
    """A body with real names, and without what the description itself forbids."""
    if body.get("conversation") and body.get("previous_response_id"):
        del body["conversation"]  # each excludes the other
    if "logit_bias" in body:
        body["logit_bias"] = {"65": 0}  # its keys are token ids; examples have `foo`
    for name, least in LEAST.items():
        if name in body:
            body[name] = max(least, body[name])
    if path.endswith("/embeddings"):
        body["model"] = EMBEDDING_MODEL
    if re.search(r"/responses(/compact|/input_tokens)?$", path):
        body = {"model": "gpt-6-astra", "input": "Hello."} | body
    if path.endswith("/uploads"):
        body["bytes"] = len(CONTENT)  # examples have 0
    if path.endswith("/complete"):
        body.pop("md5", None)  # examples have `md5`
        body["part_ids"] = [examples.part]
    if path.endswith("/file_batches"):
        body.pop("files", None)  # excludes `file_ids`
        body["file_ids"] = ["file_id"]
    if "file_ids" in body:
        body["file_ids"] = ["file_id"]
    return real(body, examples)


def main(url: str) -> int:
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def rewrite(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        examples = Examples(client, path)
        body = real_body(path, body, examples)
        return real_path(path, examples), body

    return run_suite(
        "openai", openai.__version__, RESOURCES, url, "/v1", rewrite, EXPECTED_FAILURES
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))
