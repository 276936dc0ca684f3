"""The programming language of a file, by its name and its first line."""

from collections.abc import Mapping

_BY_SUFFIX: Mapping[str, str] = {
    ".py": "python", ".pyi": "python", ".pyw": "python",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".go": "go", ".rs": "rust", ".java": "java", ".c": "c", ".h": "c",
    ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".hxx": "cpp",
    ".css": "css", ".tcss": "css", ".scss": "scss",
    ".sh": "bash", ".bash": "bash", ".zsh": "bash", ".fish": "fish",
    ".yaml": "yaml", ".yml": "yaml", ".toml": "toml",
    ".ini": "ini", ".cfg": "ini", ".sql": "sql", ".xml": "xml", ".tf": "terraform",
    ".rb": "ruby", ".php": "php", ".kt": "kotlin", ".cs": "csharp", ".swift": "swift",
    ".scala": "scala", ".lua": "lua", ".pl": "perl", ".pm": "perl", ".r": "r", ".jl": "julia",
    ".hs": "haskell", ".ml": "ocaml", ".ex": "elixir", ".exs": "elixir", ".erl": "erlang",
    ".zig": "zig", ".dart": "dart", ".proto": "protobuf", ".cmake": "cmake", ".vim": "vim",
}  # fmt: skip
_BY_NAME: Mapping[str, str] = {
    "Dockerfile": "dockerfile",
    "Containerfile": "dockerfile",
    "Makefile": "make",
    "makefile": "make",
    "CMakeLists.txt": "cmake",
    "Cargo.lock": "toml",
    "poetry.lock": "toml",
}
_BY_INTERPRETER = (("python", "python"), ("node", "javascript"), ("perl", "perl"), ("sh", "bash"))


def language_of(name: str, first_line: str) -> str | None:
    """The language's name, or None if the file is no source code as far as can be told.

    Args:
        name: of the file, without its folder.
        first_line: its first line, in which `#!` names the interpreter of a script.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    dot = name.rfind(".")
    if dot >= 0 and name[dot:].lower() in _BY_SUFFIX:
        return _BY_SUFFIX[name[dot:].lower()]
    if dot <= 0 and first_line.startswith("#!"):
        for word, language in _BY_INTERPRETER:
            if word in first_line:
                return language
    return None
