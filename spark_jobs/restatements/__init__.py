"""Corrections of gold: one engine that plans, applies and records them, and what is planned."""
