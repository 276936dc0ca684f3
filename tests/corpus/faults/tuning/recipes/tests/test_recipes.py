import pytest

from recipes.pantry import Pantry
from recipes.recipe import Recipe, label, possible, shopping

CAKE = Recipe("cake", 4, {"flour": 200, "egg": 2})
SOUP = Recipe("soup", 2, {"carrot": 3})


def test_scaled():
    assert CAKE.scaled(2) == {"flour": 100, "egg": 1}
    with pytest.raises(ValueError):
        CAKE.scaled(0)


def test_label():
    assert label(CAKE, 8) == "cake for 8\n- 4 egg\n- 400 flour"


def test_shopping():
    pantry = Pantry({"egg": 1})
    assert shopping([(CAKE, 4), (SOUP, 2)], pantry) == {"flour": 200, "egg": 1, "carrot": 3}


def test_possible():
    assert possible([CAKE, SOUP], Pantry({"carrot": 5})) == ["soup"]


def test_use():
    pantry = Pantry({"carrot": 5})
    pantry.use(SOUP.needs)
    assert pantry.amounts == {"carrot": 2}
    with pytest.raises(LookupError):
        pantry.use(SOUP.needs)
