"""Stores that lie, and the processes that read them under a limit of memory."""
