#!/usr/bin/env bash
# One schedule on the GPU of this machine, from the launch to a row of the library: measured, predicted, proved.
#
#     benchmarks/gpu/row.sh SKU ORDER OUT.csv WORKLOAD...
#     benchmarks/gpu/row.sh h100-sxm5-80gb grouped-8 rows.csv gemm -m 8192 -n 8192 -k 8192 --tile 128x256x64 --stages 3
#
# Writes the kernel (`pebble export`), profiles one launch of it with its waves kept together and one without, and adds two
# rows to OUT.csv (`pebble ncu row`). Needs pebble, PyTorch, Triton and ncu with leave to read counters; what they wrote
# is kept beside OUT.csv. No setting of the GPU is changed. PEBBLE and PYTHON name other programs than pebble and python.
set -euo pipefail
sku=${1:?usage: row.sh SKU ORDER OUT.csv WORKLOAD...}
order=${2:?usage: row.sh SKU ORDER OUT.csv WORKLOAD...}
out=${3:?usage: row.sh SKU ORDER OUT.csv WORKLOAD...}
shift 3
pebble=${PEBBLE:-pebble}
python=${PYTHON:-python}
metrics=dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors.sum,lts__t_sectors_op_read.sum,gpu__time_duration.sum
metrics+=,lts__t_sectors_srcunit_ltcfabric.sum,lts__t_sectors_op_write.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
metrics+=,l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed
kept=${out%.csv}
# shellcheck disable=SC2086 # PEBBLE may be several words
$pebble export "$order" "$@" --gpu "$sku" --format triton --out "$kept.py"
for execution in waves free; do
    barrier=$([ "$execution" = waves ] || echo --no-barrier)
    # shellcheck disable=SC2086 # no barrier is no word
    ncu --csv --print-units base --profile-from-start off --cache-control all --clock-control none --metrics "$metrics" \
        $python "$kept.py" --profile table $barrier >"$kept-$execution.csv"
    $pebble ncu row "$kept-$execution.csv" --workload "$@" --gpu "$sku" --schedule "$order" --execution "$execution" \
        --launched persistent --note "$order by row.sh" --append "$out"
done
