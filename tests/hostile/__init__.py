"""Invalid stores, and processes that read them under a memory limit."""
