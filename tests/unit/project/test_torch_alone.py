"""Only the tests that `make test` runs in torch's own process import torch, which takes seconds."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIGHT = {
    "CohereTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer", "GemmaTokenizer", "PreTrainedTokenizerFast",
    "Qwen2Tokenizer", "Qwen3_5Tokenizer",
}  # fmt: skip
"""What `transformers` has without torch."""


def named(variable):
    """The folders that a variable of the Makefile names."""
    return re.search(rf"(?m)^{variable} := (.*)$", (ROOT / "Makefile").read_text())[1].split()


def imports(path):
    """The modules that a file imports when it is imported, and the names that it takes from packages."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def test_only_tests_in_torchs_own_folders_import_torch():
    files = [path for top in ("tests", "benchmarks") for path in ROOT.glob(f"{top}/**/*.py")]
    files = [path for path in files if "corpus" not in path.parts]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}
    imported = {module: imports(path) for module, path in modules.items()}
    heavy = {"torch", "safetensors.torch"}
    heavy |= {
        name
        for names in imported.values()
        for name in names
        if re.fullmatch(r"transformers\.[A-Z]\w*", name) and name.rpartition(".")[2] not in LIGHT
    }
    while found := {module for module in imported.keys() - heavy if imported[module] & heavy}:
        heavy |= found
    own = tuple(f"{folder}/" for folder in (*named("TORCH"), *named("WHOLE_MACHINE"), "tests/soak"))
    tests = {
        str(path.relative_to(ROOT))
        for module, path in modules.items()
        if module in heavy and path.name.startswith("test_")
    }
    assert {path for path in tests if not path.startswith(own)} == set()
    assert any(path.startswith("tests/torch_executor/") for path in tests)
