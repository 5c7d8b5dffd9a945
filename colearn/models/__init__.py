"""Models: loading, sharing one base among adapters, value heads, the embedded small model."""
