"""Small Dec-POMDPs as arrays: read from `.dpomdp` files, solved and evaluated exactly. No torch."""
