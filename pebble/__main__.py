"""``python -m pebble`` is the command ``pebble``."""

import sys

from pebble.cli import main

if __name__ == "__main__":
    sys.exit(main())
