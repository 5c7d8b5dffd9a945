"""Files on this machine: the cache, and untrusted files, which are first opened in a separate
process."""
