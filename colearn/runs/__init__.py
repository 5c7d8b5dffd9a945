"""What runs leave: their records, comparisons of several, and reports."""
