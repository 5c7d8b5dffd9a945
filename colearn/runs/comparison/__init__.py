"""Comparisons of several algorithms with several seeds on one task. Plans the runs, executes them
in parallel and writes a report."""
