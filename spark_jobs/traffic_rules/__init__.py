"""What counts as invalid traffic: rules, and how they are applied to events."""
