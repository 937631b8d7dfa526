#!/usr/bin/env bash
# Check, time and profile exported Triton files on the GPU of this machine:
#
#     benchmarks/gpu/run_exports.sh FOLDER [OUT]
#
# FOLDER holds files of `pebble export --format triton`. OUT (FOLDER/results) gets times.jsonl, a line for each file with
# and without the barrier, and, where ncu is there, bytes.csv with the DRAM bytes of each file and of the library.
# Nothing of pebble is needed. No setting of the GPU is changed; its power state stands in gpu.csv.
set -u
folder=${1:?usage: run_exports.sh FOLDER [OUT]}
out=${2:-$folder/results}
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,power.limit,temperature.gpu --format=csv >"$out/gpu.csv"
metrics=dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum
: >"$out/times.jsonl"
echo "file,launch,kernel,metric,value" >"$out/bytes.csv"
failed=0
for file in "$folder"/*.py; do
    name=$(basename "$file" .py)
    for barrier in "" --no-barrier; do
        # shellcheck disable=SC2086 # no barrier is no word
        timeout 300 python "$file" --check --time --json $barrier >>"$out/times.jsonl" 2>"$out/$name.err" || {
            echo "$name $barrier: $(tail -n 1 "$out/$name.err")"
            failed=1
        }
    done
    command -v ncu >/dev/null || continue
    for launch in table library; do
        timeout 300 ncu --csv --print-units base --profile-from-start off --cache-control all --clock-control none \
            --metrics "$metrics" python "$file" --profile "$launch" 2>>"$out/$name.err" |
            python -c '
import csv, sys
lines = [line for line in sys.stdin if line.startswith("\"")]
for row in csv.DictReader(lines):
    kernel, value = row["Kernel Name"].split("(")[0].split("<")[0], row["Metric Value"].replace(",", "")
    print(",".join([sys.argv[1], sys.argv[2], kernel.replace(",", ";"), row["Metric Name"], value]))
' "$name" "$launch" >>"$out/bytes.csv"
    done
done
echo "results in $out"
exit $failed
