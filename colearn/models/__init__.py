"""Models: loading, adapters on shared base weights, value heads, and small embedded models."""
