"""What can be set, a class for each section of the reference."""
