"""DeepGEMM's rules, against configurations worked out on paper."""

from __future__ import annotations

import pytest

import pebble
from pebble.errors import InputError
from pebble.schedules.orders import OrderParams
from pebble.schedules.orders.libraries import deepgemm_group
from pebble.tuning.advisors import ADVISORS, Advice

H100, H20 = "h100-sxm5-80gb", "h20"
Told = tuple[str, int, int, str, str, float, int]  # tile, stages, SMs, multicast, order, score, shared bytes


def told(advice: Advice) -> Told:
    order = advice.schedule.name.removeprefix("deepgemm-").replace(" along ", "")
    return (
        str(advice.tile), advice.stages, advice.sms, advice.multicast, order, advice.score, advice.needs.shared_bytes,
    )  # fmt: skip


def advice(name: str, m: int, n: int, k: int, gpu: str = H100, **types: str) -> Advice:
    machine = pebble.gpu(gpu)
    return ADVISORS[name].advise(pebble.Gemm(m, n, k, **types), machine, machine.sms)[0]


# Cycles = max(L1, L2) / wave efficiency; 132 SMs: L2 at min(64 * 132, 6153) = 6153 B/clk, L1 at 128 * 132 = 16896.
# Stages = (232448 - once) / stage. Groups: 8 if 8 BM + 17 BN <= 16 BM + 9 BN, with B's multicast or none; BM and BN
# change places with A's.
CURRENT = [
    # 1 * 132 blocks, one full wave. L2 (7168 * 80 + 2048) * 132 / 6153 = 12345, L1 (2 * 7168 * 80 + 4096) / 128 = 8992.
    # 64x32 fills half a wave: 7425 / 0.5 = 14850. Once 2048 + 256 + 56 * 4 = 2528, stage 128 * 80 + 256 = 10496: 21,
    # at most 16. Groups 8 * 64 + 17 * 16 = 784 < 1168.
    ((64, 2112, 7168), {}, ("64x16x128", 16, 132, "none", "8", 12345, 170464)),
    # 2 * 64 = 128 blocks. L2 (2048 * 176 + 14336) * 128 / 6153 = 7796, over 128 / 132: 8039; 64x128 has 112 blocks:
    # 7455 / (112 / 132) = 8786. Once 14336 + 256 + 16 * 4 * 2 (112 does not divide 128), stage 128 * 176 + 256 = 22784.
    # Groups 8 * 64 + 17 * 112 = 2416 > 16 * 64 + 9 * 112 = 2032.
    ((128, 7168, 2048), {}, ("64x112x128", 9, 132, "none", "16", 8039, 219776)),
    # BM 16 is tried for m <= 16: 128 blocks. L1 counts 64 rows on the tensor cores: 4096 * 48 + 4096 * 96 + 2 * 1024 =
    # 591872, * 128 / 16896 = 4483, above L2's 4111; over 128 / 132: 4623. Once 1024 + 256 + 32 * 4, stage 6144 + 128.
    ((1, 4096, 4096), {}, ("16x32x128", 16, 132, "none", "16", 4623, 101760)),
    # 16 * 192 = 3072 blocks in 24 waves. Without a cluster L2 takes (1536 * 384 + 65536) * 3072 / 6153 = 327199; A
    # shared by two 1536 * (128 + 128) + 65536: 229040; B shared 278117. L1 (2 * 1536 * 384 + 131072) * 3072 / 16896 is
    # 238312, over 3072 / 3168: 245759. Once 65536 + 256 + 48, stage 128 * 384 + 1024 = 50176: 3, enough for
    # 256 * 128 >= 24576.
    # Groups with A: 8 * 128 + 17 * 256 = 5376 > 16 * 128 + 9 * 256 = 4352.
    ((4096, 24576, 1536), {}, ("256x128x128", 3, 132, "a", "16n", 245759, 216368)),
    # 32 * 11 = 352 blocks in 3 waves. B shared: (7168 * (128 + 96) + 49152) * 352 / 6153 = 94666; L1 (2 * 7168 * 320 +
    # 98304) * 352 / 16896 = 97621, over 352 / 396: 109823. 192: 192 % 64 = 0. Once 49152 + 256 + 56 * 8 = 49856, stage
    # 128 * 320 + 512 = 41472. Groups with B: 8 * 128 + 17 * 192 = 4288 > 3776.
    ((4096, 2112, 7168), {}, ("128x192x128", 4, 132, "b", "16m", 109823, 215744)),
    # A tie. 64x128 and 128x64 both have 128 blocks and (1000 * 192 + 16384) * 128 / 6153 = 4334, over 128 / 132: 4469;
    # so has 64x64 with A shared in 2 waves. The first that is met stays. n is no multiple of 128.
    # Once 16384 + 256 + 8 * 4 = 16672, stage 128 * 192 + 256 = 24832.
    ((1000, 1000, 1000), {}, ("64x128x128", 8, 132, "none", "16", 4469, 215328)),
    # 2 * 64 blocks, one wave: no cluster. L2 (512 * 240 + 28672) * 128 / 6153 = 3152, over 128 / 132: 3250. In two
    # waves of 64x112 with B shared L1 binds: (2 * 512 * 176 + 28672) * 256 / 16896 = 3165: 3263. Once 28672 + 256 + 32,
    # stage 128 * 240 + 512 = 31232. Groups 8 * 128 + 17 * 112 = 2928 < 16 * 128 + 9 * 112 = 3056.
    ((256, 7168, 512), {}, ("128x112x128", 6, 132, "none", "8", 3250, 216352)),
    # BM 32 for m <= 32: 256 blocks in 2 waves. B shared: (1536 * (32 + 48) + 6144) * 256 / 6153 = 5368; L1 (1536 * 128
    # + 1536 * 160 + 12288) * 256 / 16896 = 6888, over 256 / 264: 7103; A shared would be 7413 / (256 / 264) = 7644.
    # The rule does not ask whether a second row of blocks exists. Once 6144 + 256 + 96, stage 16384 + 128.
    ((32, 24576, 1536), {}, ("32x96x128", 13, 132, "b", "16m", 7103, 221152)),
    # 32 * 4 = 128 blocks, one wave. 144: 144 % 16 = 0. L2 (7168 * 272 + 36864) * 128 / 6153 = 41326, over 128 / 132.
    # Once 36864 + 256 + 448, stage 128 * 272 + 512 = 35328. Groups 8 * 128 + 17 * 144 = 3472 > 3344.
    ((4096, 576, 7168), {}, ("128x144x128", 5, 132, "none", "16", 42617, 214208)),
    # bf16: BK 64. 16 * 32 = 512 blocks in 4 waves, A shared: L1 (4 * 4096 * 384 + 131072) * 512 / 16896 = 194622, over
    # 512 / 528: 200703; 128x256 with B shared ties and comes later. Once 65536 + 256, stage 49152.
    ((4096, 4096, 4096), {"dtype": "bf16"}, ("256x128x64", 3, 132, "a", "16n", 200703, 213248)),
    # fp32 results: no BM 256. 32 * 22 = 704 blocks in 6 waves, B shared: L1 (4 * 4096 * 320 + 2 * 98304) * 704 / 16896
    # = 226645, over 704 / 792: 254975. Once 98304 + 256, stage 40960: 3 are enough for 128 * 192.
    ((4096, 4096, 4096), {"dtype": "bf16", "out_dtype": "fp32"}, ("128x192x64", 3, 132, "b", "16m", 254975, 221440)),
    # 2 * 64 blocks. L2 (2 * 7168 * 128 + 8192) * 128 / 6153 = 38343, over 128 / 132: 39541. Once 8192 + 256.
    ((128, 4096, 7168), {"dtype": "bf16"}, ("64x64x64", 13, 132, "none", "8", 39541, 221440)),
    # 78 SMs: L2 at 64 * 78 = 4992, L1 at 9984: (2048 * 384 + 65536) * 896 / 4992 and twice as much over 9984 are both
    # 152917, over 896 / 936: 159743. A shared only makes L2 less, so it ties and comes later.
    # Groups of 78: 8 * 256 + 10 * 128 = 3328 < 16 * 256 + 5 * 128.
    ((4096, 7168, 2048), {"gpu": H20}, ("256x128x128", 3, 78, "none", "8", 159743, 216384)),
]  # fmt: skip

# Score = waves, and the empty share of the last. Shared memory 2 BM BN + S (132 BM + 128 BN + 16) + scales of B.
MAY_2025 = [
    # 132 blocks, one full wave; BN 16 divides 128: up to 8 stages, 2048 + 8 * 10512 + 56 * 4.
    ((64, 2112, 7168), ("64x16x128", 8, 132, "none", "16n", 1.0, 86368)),
    # 2 * 64 = 128 blocks; 128x56 and 256x56 have as many, with a smaller BN. 128 / gcd(128, 112) = 8 > 4: up to 8
    # stages, 14336 + 8 * 22800 + 16 * 4 * 2. ceil(128 / 1) = 128 SMs.
    ((128, 7168, 2048), ("64x112x128", 8, 128, "none", "16n", 2 - 128 / 132, 196864)),
    # m below 64: 64x32 has 128 blocks, 64x24 171 and so two waves. 4096 + 8 * 12560 + 128.
    ((1, 4096, 4096), ("64x32x128", 8, 128, "none", "16n", 2 - 128 / 132, 104704)),
    # 16 * 192 = 3072 blocks, 24 waves, 36 blocks in the last; 256x120 needs 25, 128x160 38. 65536 + 3 * 50192 + 48 =
    # 216160, 4 stages would be 266352. BM > BN: A is multicast. ceil(3072 / 24) = 128 SMs.
    ((4096, 24576, 1536), ("256x128x128", 3, 128, "a", "16n", 25 - 36 / 132, 216160)),
    # 16 * 8 = 128 blocks; k / 128 = 7 stages at most: 16384 + 7 * 24848 + 32. 1000 >= 512 rows, BM < BN: B.
    ((1000, 1000, 1000), ("64x128x128", 7, 128, "b", "16m", 2 - 128 / 132, 190352)),
    # 256 rows: no 64xBN in one wave, 128x112 has 2 * 64 = 128 blocks. k / 128 = 4 stages: 28672 + 4 * 31248 + 32.
    ((256, 7168, 512), ("128x112x128", 4, 128, "none", "16n", 2 - 128 / 132, 153696)),
    # 16 * 24 = 384 blocks, 3 waves, 120 in the last; 256x96 has 88 there, 256x80 needs 4 waves. 128 / gcd(128, 88) is
    # 16: 45056 + 4 * 45072 + 448 = 225792, 5 stages 270864.
    ((4096, 2112, 7168), ("256x88x128", 4, 128, "a", "16n", 4 - 120 / 132, 225792)),
    # 256 blocks, 2 waves, 124 in the last. 128 / gcd(128, 96) = 4: 4 stages at most, 12288 + 4 * 20752 + 96.
    ((32, 24576, 1536), ("64x96x128", 4, 128, "none", "16n", 3 - 124 / 132, 95392)),
    # 4 * 32 = 128 blocks; 256x64 has as many and a smaller BN. 32768 + 5 * 33296 + 224 = 199472; 6 stages would be
    # 232768, 320 bytes too many. 512 rows, BM = BN: B.
    ((512, 4096, 7168), ("128x128x128", 5, 128, "b", "16m", 2 - 128 / 132, 199472)),
    # 32 * 4 blocks for BN 144 and 160: with the same BM the smaller. 36864 + 5 * 35344 + 448.
    ((4096, 576, 7168), ("128x144x128", 5, 128, "b", "16m", 2 - 128 / 132, 214032)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "types", "expected"), CURRENT)
def test_the_current_rule(shape: tuple[int, int, int], types: dict[str, str], expected: Told) -> None:
    assert told(advice("deepgemm", *shape, **{"dtype": "fp8", **types})) == expected


@pytest.mark.parametrize(("shape", "expected"), MAY_2025)
def test_the_rule_of_may_2025(shape: tuple[int, int, int], expected: Told) -> None:
    result = told(advice("deepgemm-2025-05", *shape, dtype="fp8"))
    assert result[:5] == expected[:5] and result[6] == expected[6] <= 232_448
    assert result[5] == pytest.approx(expected[5])


@pytest.mark.parametrize(("tile", "group"), [((128, 128), 8), ((64, 128), 16), ((128, 64), 8), ((128, 256), 16)])
def test_groups_of_132_sms_without_multicast_on_a(tile: tuple[int, int], group: int) -> None:
    # (128, 128): 8 * 128 + 17 * 128 = 16 * 128 + 9 * 128 = 3200, a tie
    assert deepgemm_group(OrderParams(sms=132, tile_m=tile[0], tile_n=tile[1])) == group


def test_experts_are_padded_to_128_rows() -> None:
    machine = pebble.gpu(H100)
    experts = pebble.GroupedGemm((100, 300, 1), 4096, 7168, dtype="fp8")  # 128 + 384 + 128 = 640 rows
    whole = pebble.Gemm(640, 4096, 7168, dtype="fp8")
    for name in ("deepgemm", "deepgemm-2025-05"):
        result = ADVISORS[name].advise(experts, machine, 132)
        assert {each.tile.bm for each in result} == {128}
        alike = [each for each in ADVISORS[name].advise(whole, machine, 132) if each.tile.bm == 128]
        assert {told(each) for each in result} == {told(each) for each in alike}


def test_an_odd_number_of_sms_shares_no_loads() -> None:
    machine, gemm = pebble.gpu(H100), pebble.Gemm(8192, 8192, 8192, dtype="fp8")
    for name in ("deepgemm", "deepgemm-2025-05"):
        even, odd = (ADVISORS[name].advise(gemm, machine, sms) for sms in (130, 131))
        assert even[0].multicast != "none" and {each.multicast for each in odd} == {"none"}


@pytest.mark.parametrize(
    ("workload", "gpu", "sms", "text"),
    [
        (pebble.Gemm(64, 64, 64), "a100-sxm4-40gb", 108, "compute capability 9.0"),
        (pebble.Gemm(64, 64, 64, dtype="fp32"), H100, 132, "got fp32"),
        (pebble.Gemm(64, 64, 64, dtype="fp8", out_dtype="fp32"), H100, 132, "fp8 to fp32"),
        (pebble.Ffn(64, 64, 64), H100, 132, "one product at a time"),
        (pebble.Gemm(64, 64, 2**27, dtype="fp8"), H100, 132, "leave room for stages"),
    ],
)
def test_what_the_rules_are_not_for(workload: pebble.Gemm, gpu: str, sms: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        ADVISORS["deepgemm"].advise(workload, pebble.gpu(gpu), sms)
    with pytest.raises(InputError):
        ADVISORS["deepgemm-2025-05"].advise(workload, pebble.gpu(gpu), sms)
