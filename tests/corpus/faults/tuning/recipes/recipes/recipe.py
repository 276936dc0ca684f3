"""Recipes for a number of people."""

from dataclasses import dataclass, field

from recipes.pantry import Pantry


@dataclass
class Recipe:
    name: str
    serves: int
    needs: dict[str, float]
    steps: list[str] = field(default_factory=list)

    def scaled(self, people: int) -> dict[str, float]:
        """The needs for another number of people."""
        if people < 1:
            raise ValueError("cook for one at least")
        return {item: amount * people / self.serves for item, amount in self.needs.items()}


def label(recipe: Recipe, people: int) -> str:
    """A card: the name of the recipe, then its needs in the order of the alphabet."""
    name = recipe.name
    lines = []
    for item, amount in sorted(recipe.scaled(people).items()):
        lines.append(f"- {amount:g} {item}")
    return "\n".join([f"{name} for {people}", *lines])


def shopping(recipes: list[tuple[Recipe, int]], pantry: Pantry) -> dict[str, float]:
    """What to buy for several meals together."""
    needs: dict[str, float] = {}
    for recipe, people in recipes:
        for item, amount in recipe.scaled(people).items():
            needs[item] = needs.get(item, 0) + amount
    return pantry.missing(needs)


def possible(recipes: list[Recipe], pantry: Pantry) -> list[str]:
    return [recipe.name for recipe in recipes if not pantry.missing(recipe.needs)]
