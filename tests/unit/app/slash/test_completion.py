import pytest

from app.slash.completion import complete
from app.slash.folder_names import list_folder


class Names:
    """Fixed names; folders are read at once."""

    def __init__(self, **by_kind):
        self._by_kind = by_kind

    def of(self, kind):
        return dict.fromkeys(self._by_kind.get(kind, ()), "")

    def in_folder(self, folder):
        return list_folder(folder)


NAMES = Names(
    agent=["security_audit", "summarizer"],
    branch=["main", "my ideas"],
    collection=["docs", "notes-2"],
    conversation=["Ferry prices", "Ferns"],
    model=["qwen3-0.6b", "Qwen2.5-Coder", "smollm2"],
    setting=["temperature", "theme"],
    theme=["dark", "light"],
)


def shown(before):
    found = complete(before, NAMES)
    return [] if found is None else [one.shown or one.text for one in found.candidates]


def tab(before):
    """The text after tab."""
    found = complete(before, NAMES)
    return before if found is None else before[: len(before) - len(found.typed)] + found.common


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("notes.md", "news.txt", ".hidden", "bad\x1bname", "two words.pdf"):
        (tmp_path / name).touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / "my files").mkdir()
    (tmp_path / "my files" / "a b.txt").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/mod", "/model "),
        ("/model q", "/model qwen"),
        ("/model Qwen3", "/model qwen3-0.6b"),
        ("/model smollm2 n", "/model smollm2 now"),
        ("/theme d", "/theme dark"),
        ("/mouse of", "/mouse off"),
        ("/copy b", "/copy branch"),
        ("/switch my", "/switch my ideas"),
        ("/merge g", "/merge graft"),
        ("/merge graft m", "/merge graft m"),
        ("/merge graft ma", "/merge graft main"),
        ("/resume ferr", "/resume Ferry prices"),
        ("/agents sec", "/agents security_audit"),
        ("/sources att", "/sources attach"),
        ("/sources attach no", "/sources attach notes-2"),
        ("/sources create no", "/sources create no"),
        ("/sampling temp", "/sampling temperature="),
        ("/sampling top_p=0.9 se", "/sampling top_p=0.9 seed="),
        ("/system cl", "/system clear"),
        ("/shorten s", "/shorten summarise"),
        ("/memory f", "/memory forget"),
        ("/settings te", "/settings temperature"),
        ("/rename dar", "/rename dar"),
        ("@sec", "@security_audit"),
        ("@no", "@notes-2"),
        ("ask @no", "ask @notes-2"),
        ("ask (@no", "ask (@notes-2"),
        ("mail me@no", "mail me@no"),
        ("@docs ", "@docs "),
    ],
)
def test_tab_writes_what_all_candidates_agree_on(before, after, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tab(before) == after


def test_agents_complete_at_the_beginning_of_a_message_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown("@") == ["security_audit", "summarizer", "docs", "notes-2"]
    assert shown("see @") == ["docs", "notes-2"]


def test_a_name_that_begins_so_is_offered_where_none_does():
    found = complete("/model qwem3", NAMES)
    assert found.similar
    assert tab("/model smolm2") == "/model smollm2"
    assert tab("@securty_audit") == "@security_audit"


def test_nothing_completes_a_whole_name_or_an_unknown_command():
    assert shown("/theme dark") == shown("/nosuch x") == shown("hello") == []


def test_files_complete_with_their_folders(folder):
    assert shown("see @n") == ["notes-2", "news.txt", "notes.md"]
    assert tab("see @not") == "see @notes"
    assert tab("see @src/m") == "see @src/main.py"
    assert tab("@sr") == "@src/"
    assert tab(f"@{folder}/ne") == f"@{folder}/news.txt"
    assert tab("see @NEWS") == "see @news.txt"
    assert shown("x @") == [
        "docs",
        "notes-2",
        "my files/",
        "news.txt",
        "notes.md",
        "src/",
        "two words.pdf",
    ]


def test_names_with_spaces_are_quoted(folder):
    assert tab("see @two") == 'see @"two words.pdf"'
    assert tab('see @"two w') == 'see @"two words.pdf"'
    assert tab("see @my") == 'see @"my files/'
    assert tab('see @"my files/') == 'see @"my files/a b.txt"'
    assert tab("/sources add docs two") == '/sources add docs "two words.pdf"'
    assert tab("/attach two") == "/attach two words.pdf"
    assert tab("/attach my files/") == "/attach my files/a b.txt"


def test_hidden_files_complete_behind_a_point_only(folder):
    assert ".hidden" not in shown("see @")
    assert tab("see @.h") == "see @.hidden"


def test_the_path_of_an_agent_that_is_called_completes(folder):
    assert tab("@security_audit sr") == "@security_audit src/"
    assert shown("@docs sr") == []


def test_a_folder_that_cannot_be_read_completes_nothing(folder):
    assert shown("see @nosuch/a") == shown("see @notes.md/") == shown("see @\0/") == []


def test_accented_names_complete_however_they_are_stored(folder):
    (folder / "re\u0301sume\u0301.pdf").touch()
    assert tab("see @r\u00e9s") == "see @re\u0301sume\u0301.pdf"
