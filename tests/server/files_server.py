"""A server that keeps files, in a folder of the test, with its clock."""

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai

from app.server.retrieval.service import RetrievalService
from tests.fakes.gated_embedder import GatedEmbedder
from tests.server.byte_engine import new_byte_engine
from tests.server.live import Live, live


class Clock:
    """Unix time that a test sets."""

    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


@dataclass
class FilesServer:
    """`api` is the official client."""

    api: openai.OpenAI
    http: httpx.Client
    server: Live
    service: RetrievalService
    embedder: GatedEmbedder
    clock: Clock
    folder: object

    def upload(self, name, data, **fields):
        given = {"file": (name, data), "purpose": "assistants"} | fields
        return self.api.files.create(**given)

    def store_with(self, files, **fields):
        """A vector store of files by name, all indexed."""
        store = self.api.vector_stores.create(**fields)
        for name, data in files.items():
            file = self.upload(name, data)
            done = self.api.vector_stores.files.create_and_poll(
                file.id, vector_store_id=store.id, poll_interval_ms=5
            )
            assert done.status == "completed", done.last_error
        return store

    def wake_after(self, seconds):
        """Let time pass, and the indexing thread notice."""
        self.clock.now += seconds
        self.service.open().indexing.wake()

    def contains(self, needle):
        """Files below the folder that contain bytes."""
        # In another process: one that closes a database's file loses the locks of its connections.
        command = ["grep", "-rlaF", "-e", needle.decode(), str(self.folder)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return [Path(line) for line in found.stdout.splitlines()]


@contextmanager
def files_server(
    folder,
    *,
    embedder=None,
    clock=None,
    force=None,
    engine_options=None,
    image_reader=None,
    **config,
):
    embedder, clock = embedder or GatedEmbedder(), clock or Clock()
    engine = new_byte_engine(force=force, **(engine_options or {}))
    engine.embedder = embedder
    engine.start()
    engine.wait_ready(30)
    service = RetrievalService(folder, embedder, clock=clock)
    try:
        service.start()
        with (
            live(engine, retrieval=service, image_reader=image_reader, **config) as server,
            openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as api,
            httpx.Client(base_url=server.url, timeout=60) as http,
        ):
            yield FilesServer(api, http, server, service, embedder, clock, folder)
    finally:
        service.close()
        engine.shutdown()
