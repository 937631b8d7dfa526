#!/bin/sh
# Remakes what the README shows. Run from the repository root with pebble on the PATH.
set -e
export COLUMNS=100
pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --figure docs/figures/compare.svg
pebble bound gemm -m 400 -n 400 -k 10 --cache 400el
