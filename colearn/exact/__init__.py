"""Small Dec-POMDPs as arrays: a reader for `.dpomdp` files, exact search and exact evaluation. This
package does not import torch."""
