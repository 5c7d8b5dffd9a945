"""Text that is read, cleaned or masked: CSV, JSON, reasoning, secrets, notes to the user."""
