"""An iteration's update: rows of trees, critics, objectives, and the updater over them."""
