"""The rules of invalid traffic, and how they are applied to events."""
