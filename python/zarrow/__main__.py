"""`python -m zarrow`: the command `zarrow`."""

import sys

from zarrow.cli import main

sys.exit(main())
