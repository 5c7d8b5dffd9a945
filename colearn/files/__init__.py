"""Files on this machine: the cache, and files that others made, first opened apart."""
