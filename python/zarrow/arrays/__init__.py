"""Methods of stored and decoded arrays, and the stubs of these classes."""
