"""Certificates: proofs that can be checked without trusting what found them.

``check`` holds the checker: exact arithmetic, the standard library, no solver. The certificates are written by
`pebble.proof`.
"""

from pebble.certificate.check import FORMAT, VERSION, check, check_file
from pebble.certificate.reading import RefusedError, UnreadableError

__all__ = ["FORMAT", "VERSION", "RefusedError", "UnreadableError", "check", "check_file"]
