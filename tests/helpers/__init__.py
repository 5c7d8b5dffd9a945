"""What several tests share: tiny models and tasks, trees by hand, programs, servers, bad input."""
