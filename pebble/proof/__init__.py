"""Making proofs: certificates for `pebble.certificate`, and texts for readers."""
