"""Run the command line as `python -m animed`."""

from __future__ import annotations

import sys

from animed.cli import main

if __name__ == "__main__":
    sys.exit(main())
