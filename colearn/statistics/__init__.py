"""Statistics over seeds, and arithmetic on rewards that may be unscored."""
