from slugs.letters import plain
from slugs.slug import breadcrumbs, slug, unique_slug


def test_plain():
    assert plain("Łódź café straße".lower()) == "lodz cafe strasse"


def test_words():
    assert slug("Hello, World!") == "hello-world"
    assert slug("Don't panic") == "dont-panic"


def test_a_long_title_is_kept_whole():
    title = "How to mend a bicycle with nothing but a spoon and a piece of string"
    assert slug(title) == "how-to-mend-a-bicycle-with-nothing-but-a-spoon-and-a-piece-of-string"


def test_nothing_left():
    assert slug("???") == "page"


def test_cut_at_a_word():
    assert slug("one two three", max_length=8) == "one-two"


def test_unique():
    assert unique_slug("A b", {"a-b", "a-b-2"}) == "a-b-3"


def test_breadcrumbs():
    assert breadcrumbs("docs/first-steps") == [
        ("Docs", "/docs"),
        ("First steps", "/docs/first-steps"),
    ]
