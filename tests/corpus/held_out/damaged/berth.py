"""Berths."""


def berth(number):
	if number > 3:
        return "outer"
	return "inner"
