#!/usr/bin/env bash
# Tune layers of named models for a GPU, a table and a report each, for `make_tables.py plan PLAN --tuned`:
#
#     benchmarks/gpu/tune_layers.sh h100-sxm5-80gb FOLDER
#
# About ten minutes on two cores. Tiles are those that the kit's kernels run fast with.
set -u
gpu=${1:?usage: tune_layers.sh GPU FOLDER}
folder=${2:?usage: tune_layers.sh GPU FOLDER}
mkdir -p "$folder"
tune() {
    name=$1
    shift
    pebble tune "$@" --gpu "$gpu" --save "$folder/$gpu-$name.json" --json >"$folder/$gpu-$name.report.json"
}
for shape in square:8192:8192:8192 llama-3-8b-gate_up:8192:28672:4096 llama-2-7b-gate_up:8192:22016:4096 \
    llama-2-70b-down:8192:8192:28672 qwen-2.5-32b-gate:8192:27648:5120 llama-3-70b-gate_up:8192:57344:8192; do
    IFS=: read -r name m n k <<<"$shape"
    tune "$name" gemm -m "$m" -n "$n" -k "$k" --tile 128x256x64
done
tune ffn-7b ffn --tokens 8192 --d-model 4096 --hidden 11008 --tile 128x256x64
tune ffn-8b-gated ffn --tokens 8192 --d-model 4096 --hidden 14336 --gated --tile 128x128x64
tune ffn-13b-gated ffn --tokens 5120 --d-model 5120 --hidden 13824 --gated --tile 128x128x64
tune att-32k attention --queries 32768 --keys 32768 --head-dim 128 --heads 8 --tile 128x128 --robust waves,waves@90
tune att-64k attention --queries 65536 --keys 65536 --head-dim 128 --heads 4 --tile 128x128 --robust waves,waves@90
tune att-8k-causal attention --queries 8192 --keys 8192 --head-dim 128 --heads 32 --kv-heads 8 --causal --tile 128x128 \
    --robust waves,waves@90
tune att-32k-causal attention --queries 32768 --keys 32768 --head-dim 128 --heads 8 --causal --tile 128x128 \
    --robust waves,waves@90
