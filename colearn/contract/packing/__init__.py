"""Packing of trees into token rows: the contexts of an agent, and the packer."""
