"""Statistics over seeds, and arithmetic on rewards of which some are not scored."""
