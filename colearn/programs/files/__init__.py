"""Handles files on this machine: the cache, and untrusted files. An untrusted file is first opened
in a separate process."""
