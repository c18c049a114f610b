"""Methods of arrays and of what is read from them, and the stubs of these classes."""
