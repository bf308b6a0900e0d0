"""Triggers: what waits in the triggerer, each paired with an operator of the same name."""
