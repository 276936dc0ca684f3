import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings.cors_origin import check_origin


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://chat.example", "https://chat.example"),
        ("https://Chat.Example/", "https://chat.example"),
        ("HTTP://localhost:3000", "http://localhost:3000"),
        ("https://chat.example:443", "https://chat.example"),
        ("http://chat.example:80", "http://chat.example"),
        ("http://chat.example:443", "http://chat.example:443"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://127.0.0.1:5173", "http://127.0.0.1:5173"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("app://obsidian.md", "app://obsidian.md"),
        ("tauri://localhost", "tauri://localhost"),
        ("*", "*"),
        ("null", "null"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(text, origin):
    assert check_origin(text) == origin


@pytest.mark.parametrize(
    "text",
    [
        "",
        "chat.example",
        "https://",
        "https://chat.example/app",
        "https://chat.example?x",
        "https://user@chat.example",
        "https://*.example",
        "http://localhost:*",
        "http://localhost:port",
        "https://büro.example",  # browsers send xn--bro-hoa.example
        "https://a b",
        "https://a\r\nx: y",
    ],
)
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(ValueError, match=r"should be an origin such as https://chat\.example"):
        check_origin(text)


@given(st.text(max_size=40))
def test_what_is_accepted_can_be_a_header(text):
    try:
        origin = check_origin(text)
    except ValueError:
        return
    assert origin.isascii()
    assert origin.isprintable()
    assert check_origin(origin) == origin
