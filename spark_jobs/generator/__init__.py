"""Seeded, realistic events to run on."""
