"""The two ways in: the command line, and `train` and `compare` from Python."""
