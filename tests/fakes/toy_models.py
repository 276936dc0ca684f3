"""Served models with toy engines: each load is counted, and can be made to wait or to fail."""

import threading
from dataclasses import replace
from types import SimpleNamespace

from engine.api.errors import ModelError
from engine.api.generation_defaults import GenerationDefaults
from engine.models.store import ModelStore
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_models import ServedModels
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import ToyExecutor, toy_memory, toy_spec
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

PATIENCE_S = 30


class ToyModels:
    """Installed models `first`, `second`, `third` and `broken`, and the engines that were made for them.

    Attributes:
        loads: the names of the models in the order in which their weights were loaded.
        gates: for a model's name, a semaphore that each of its steps has to pass.
        load_gates: the same for each load, after it has reported a half of its progress.
        failing: names whose weights cannot be loaded.
        engines: all engines that were made.
    """

    def __init__(self, folder, *, gates=None, load_gates=None):
        self.gates = gates or {}
        self.load_gates = load_gates or {}
        self.failing = set()
        self.loads = []
        self.engines = []
        self._lock = threading.Lock()
        self.store = ModelStore(folder / "store", check=lambda path: None)
        for name in ("first", "second", "third", "broken"):
            path = folder / f"{name}.gguf"
            path.write_bytes(name.encode())
            self.store.add(str(path))

    def config(self, name, **settings):
        return replace(toy_config(**settings), model=self.store.get(name).path, name=name)

    def served(self, *names, configs=None, **options):
        """Models that were not started."""
        configs = configs or [self.config(name) for name in names]
        return ServedModels(configs, self.make, **{"total_memory": 2**30} | options)

    def make(self, config, find_free):
        engine = AsyncPravahaEngine(
            config,
            executor_factory=self._load,
            model_opener=self._open,
            models=self.store,
            find_free_memory=find_free,
            probes=(),
        )
        self.engines.append(engine)
        return engine

    def _open(self, config):
        if config.name == "broken":
            raise ModelError("The file is damaged.")
        return SimpleNamespace(
            name=config.name,
            spec=replace(toy_spec(256), vocab_size=VOCAB_SIZE),
            paths=(),
            tokenizer=byte_tokenizer(add_bos=config.name == "second"),
            weight_format="F32",
            parameters=250,
            file_bytes=1000,
            images=None,
            uses_graphs=False,
            plan_memory=toy_memory,
            generation_defaults=GenerationDefaults(),
        )

    def _load(self, model, config, *, num_blocks, max_model_len, progress):
        with self._lock:
            self.loads.append(config.name)
        progress(0.5)
        gate = self.load_gates.get(config.name)
        while gate is not None and not gate.acquire(timeout=0.01):
            progress(0.5)  # ends the load if the engine is shut down
        if config.name in self.failing:
            raise ModelError("The weights are damaged.")
        progress(1.0)
        executor = ToyExecutor(num_blocks, config.block_size, vocab_size=VOCAB_SIZE)
        executor.gate = self.gates.get(config.name)
        return executor
