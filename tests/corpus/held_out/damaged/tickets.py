"""Tickets."""


class Ticket:
    def __init__(self, line, price)
        self.line = line
        self.price = price
