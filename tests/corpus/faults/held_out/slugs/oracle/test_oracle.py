from slugs.slug import slug, unique_slug


def test_no_limit_unless_asked():
    for count in (1, 10, 30, 100, 400):
        title = " ".join(["word"] * count)
        assert slug(title) == "-".join(["word"] * count)
        assert unique_slug(title, [slug(title)]) == slug(title) + "-2"


def test_limit():
    assert slug("alpha beta gamma", "-", 10) == "alpha-beta"
    assert slug("alpha beta gamma", max_length=9) == "alpha"
    assert slug("alpha", max_length=2) == "alpha"
    assert slug("a b", "_") == "a_b"
