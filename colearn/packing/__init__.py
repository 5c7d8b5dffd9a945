"""Trees as rows of tokens: contexts of one agent, and pieces one behind the other."""
