"""Rates."""

<<<<<<< HEAD
RATE = 0.19
=======
RATE = 0.07
>>>>>>> feature/reduced
