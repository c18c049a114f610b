"""Functions of `zarrow.*`: open, create, save and copy nodes."""
