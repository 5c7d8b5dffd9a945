"""Small Dec-POMDPs as arrays: a reader for `.dpomdp` files, exact search and exact evaluation. Does
not import torch."""
