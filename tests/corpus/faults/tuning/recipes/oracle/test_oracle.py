from recipes.recipe import Recipe, label


def test_cards():
    tea = Recipe("tea", 1, {"leaf": 2.5})
    assert label(tea, 1) == "tea for 1\n- 2.5 leaf"
    assert label(tea, 2) == "tea for 2\n- 5 leaf"
    bread = Recipe("bread", 2, {"yeast": 1, "flour": 500, "salt": 10})
    assert label(bread, 2) == "bread for 2\n- 500 flour\n- 10 salt\n- 1 yeast"


def test_nothing_needed():
    assert label(Recipe("fasting", 1, {}), 3) == "fasting for 3"
