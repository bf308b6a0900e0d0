"""Which touches a conversion is credited to."""
