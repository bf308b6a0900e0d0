"""Triggers, which wait in the triggerer; each is paired with an operator of the same name."""
