"""Corrections of gold by repairs, replays and marks: one engine (`apply`) plans, applies and records them."""
