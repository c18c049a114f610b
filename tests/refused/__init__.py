"""Scripts that use zarrow while the system refuses threads or files."""
