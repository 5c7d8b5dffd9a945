"""Recognises addresses of this machine's loopback interface."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns whether a host is this machine's loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
