"""Finds which device each id means, and whose it is: alone, shared or unknown."""
