"""Computes statistics over seeds, and sums and means of rewards that may be unscored."""
