"""Stateless DataFrame to DataFrame functions."""
