"""What each tool does to a context, and what it says about it."""
