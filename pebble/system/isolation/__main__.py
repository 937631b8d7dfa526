"""A worker: ``python -m pebble.system.isolation LIBRARY`` answers on standard output what standard input asks."""

import sys

from pebble.system.isolation import Library, serve

serve(Library(sys.argv[1]))
