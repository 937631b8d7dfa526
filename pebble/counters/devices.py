"""Which machine file a report's GPU has, by the name that the driver gives it."""

from __future__ import annotations

MACHINES = {
    "NVIDIA H200": "h200-sxm-141gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb",
    "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
    "NVIDIA L40S": "l40s",
    "NVIDIA A40": "a40",
    "NVIDIA B200": "b200-sxm",
    "NVIDIA H20": "h20",
    "NVIDIA A30": "a30",
    "NVIDIA A2": "a2",
    "NVIDIA GB10": "gb10",
    "NVIDIA GeForce RTX 4090": "rtx4090",
}
