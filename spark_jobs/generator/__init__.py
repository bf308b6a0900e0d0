"""Generates seeded, realistic ad events."""
