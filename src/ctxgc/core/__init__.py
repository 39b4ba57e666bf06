"""The cellar: pure functions and plain data, without clock, randomness, files or network."""
