"""`python -m zarrow`: the command `zarrow`."""

import sys

from zarrow.cli import main

if __name__ == "__main__":
    sys.exit(main())
