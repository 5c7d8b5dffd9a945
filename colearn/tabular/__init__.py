"""Small Dec-POMDPs as arrays: reading of `.dpomdp` files, exact search and evaluation. No torch."""
