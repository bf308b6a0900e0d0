"""What adloom costs: `make bench`."""
