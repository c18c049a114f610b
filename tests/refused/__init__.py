"""Scripts that use zarrow in a process whose threads or files the system refuses."""
