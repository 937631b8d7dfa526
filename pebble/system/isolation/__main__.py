"""A worker: ``python -m pebble.system.isolation LIBRARY`` answers on standard output what it is asked on standard input."""

import sys

from pebble.system.isolation import Library, serve

serve(Library(sys.argv[1]))
