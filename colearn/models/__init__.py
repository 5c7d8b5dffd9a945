"""Models: loading, adapters on shared base weights, value heads, embedded small models."""
