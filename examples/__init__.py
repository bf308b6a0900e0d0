"""Programs to learn from: parts of adloom on other data."""
