"""How often tests kill their processes: `ZARROW_KILLS=20` sets the number."""

import os


def kills(quick: int) -> int:
    """Return the number of kills; by default only a quick sample runs."""
    return int(os.environ.get("ZARROW_KILLS", quick))
