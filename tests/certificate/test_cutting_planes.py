"""Proof logs: the formula has a solution exactly up to the optimum, true refutations pass, and nothing else does."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
import tempfile
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from pebble.certificate import RefusedError, check_file, cutting_planes
from pebble.certificate.cutting_planes import HEADER, Constraint, check_log, propagates
from pebble.certificate.formula import Formula, Terms, at_least, check_first
from pebble.certificate.games import read_game
from pebble.cli import main
from pebble.errors import GapOpenError
from pebble.proof.refutation import refute, run_exact
from tests.certificate.oracle import least_cost
from tests.certificate.random_games import random_game

LOGS = Path(__file__).parent / "logs"
needs_exact = pytest.mark.skipif(find_spec("exact") is None, reason="the extra proofs is not installed")


def solvable(constraints: list[Constraint], variables: int) -> bool:
    """By CP-SAT, which knows nothing of how the formula was made."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_bool_var(f"x{i}") for i in range(variables + 1)]
    for constraint in constraints:
        model.add(sum(c * (x[v] if v > 0 else 1 - x[-v]) for v, c in constraint.terms.items()) >= constraint.degree)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


@pytest.mark.parametrize("seed", range(60))
def test_the_formula_has_a_solution_exactly_from_the_optimum_on(seed: int) -> None:
    rnd = random.Random(seed)
    statement = random_game(rnd, rnd.choice(["one-shot", "in-place"]))
    game, best = read_game(statement, "game"), least_cost(statement)
    first = range(len(game.tasks))
    if best is None:  # it does not fit at all
        best = 10**6
        assert not solvable(*of_limit(game, best, first))
        return
    assert solvable(*of_limit(game, best, first))
    assert not solvable(*of_limit(game, best - 1, first))


def of_limit(game, limit, first):
    formula = Formula(game, limit, first)
    return formula.constraints, len(formula.variables)


def values(constraint: Constraint, point: tuple[int, ...]) -> bool:
    """Whether a point satisfies a constraint."""
    left = sum(c * (point[abs(v) - 1] if v > 0 else 1 - point[abs(v) - 1]) for v, c in constraint.terms.items())
    return left >= constraint.degree


def random_constraint(rnd: random.Random, variables: int) -> Constraint:
    terms: Terms = {}
    for v in rnd.sample(range(1, variables + 1), rnd.randint(1, variables)):
        terms[rnd.choice([v, -v])] = rnd.randint(1, 5)
    return Constraint(terms, rnd.randint(-1, sum(terms.values())))


def words(rnd: random.Random, known: int, variables: int) -> list[str]:
    """A random line of reverse Polish notation."""
    line = [str(rnd.randint(1, known))]
    for _ in range(rnd.randint(1, 6)):
        x = rnd.randint(1, variables)
        line += rnd.choice(
            [
                [str(rnd.randint(1, known)), "+"], [rnd.choice(["", "~"]) + f"x{x}", "+"], ["s"],
                [str(rnd.randint(1, 4)), "*"], [str(rnd.randint(1, 4)), "d"], [f"x{x}", "w"],
            ]
        )  # fmt: skip
    return line


@pytest.mark.parametrize("seed", range(40))
def test_no_rule_loses_a_solution(seed: int) -> None:
    """Random derivations: a contradiction is accepted only where no point satisfies the formula."""
    rnd, variables = random.Random(seed), 5
    formula = [random_constraint(rnd, variables) for _ in range(rnd.randint(2, 5))]
    points = [p for p in product((0, 1), repeat=variables) if all(values(c, p) for c in formula)]
    lines, known = [HEADER, f"f {len(formula)}"], len(formula)
    for _ in range(30):
        lines.append(" ".join(["pol", *words(rnd, known, variables)]))
        known += 1
        if points:
            with pytest.raises(RefusedError, match="can be satisfied"):
                check_log(formula, "\n".join([*lines, f"c {known}"]))
    claim = random_constraint(rnd, variables)
    if propagates(formula, claim):
        assert all(values(claim, p) for p in points)


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("pseudo-Boolean proof version 3.0\nf\nc 1", "expected 'pseudo-Boolean proof"),
        (f"{HEADER}\nf 3\nc 1", "the formula has 2 constraints"),
        (f"{HEADER}\nl 3\nc 1", "1 to 2"),
        (f"{HEADER}\nf 2\npol 1 +\nc 3", "too few"),
        (f"{HEADER}\nf 2\npol 1 7 +\nc 3", "there is no constraint '7'"),
        (f"{HEADER}\nf 2\npol 1 2\nc 3", "leaves 2"),
        (f"{HEADER}\nf 2\npol 1 0 d\nc 3", "positive whole number"),
        (f"{HEADER}\nf 2\npol 1 -2 *\nc 3", "positive whole number"),
        (f"{HEADER}\nf 2\nrup +1 x1 >= 2 ;\nc 3", "unit propagation"),
        (f"{HEADER}\nf 2\nred +1 x1 >= 1 ;\nc 3", "there is no rule 'red'"),
        (f"{HEADER}\nf 2\ndel 1\npol 1 2 +\nc 3", "there is no constraint '1'"),
        (f"{HEADER}\nf 2\ndel id 2 1\npol 1 2 +\nc 3", "there is no constraint '1'"),
        (f"{HEADER}\nf 2\ndel 1 1\nc 2", "there is no constraint '1'"),
        (f"{HEADER}\nf 2\npol" + " 1" * 1002 + "\nc 3", "more than 1000 constraints waiting"),
        ("\n".join([HEADER, "f 2", "pol 1 1 +", *(f"pol {n} {n} +" for n in range(3, 4200))]), "more than 4096 bits"),
        (f"{HEADER}\nf 2\npol 1 2 +", "without a contradiction"),
        (f"{HEADER}\nf 2\nc 1", "can be satisfied"),
        (f"{HEADER}\nf 2\npol 1" + f" {'9' * 1200} *" * 3 + "\nc 3", "more than 4096 bits"),
    ],
)
def test_a_log_that_proves_nothing_is_refused(log: str, why: str) -> None:
    formula = [at_least([(1, 1), (1, 2)], 1), at_least([(1, 1), (-1, 2)], 0)]
    with pytest.raises(RefusedError) as refused:
        check_log(formula, log)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "a >= 1 ;", "a +1 ~x1 >= 1 ;", "red +1 x1 >= 2 ; x1 -> 1", "dom >= 1 ;", "o x1 x2", "soli x1 x2", "v x1 x2",
        "e 3 >= 1 ;", "i 1 >= 1 ;", "j 1 >= 1 ;", "core id 1", "conclusion UNSAT : 1", "output NONE", "w 1", "load 1",
    ],
)  # fmt: skip
def test_rules_that_could_bring_in_what_does_not_follow_are_unknown(line: str) -> None:
    """Assumptions, solutions, redundancy: the formats have them, this checker has not."""
    formula = [at_least([(1, 1), (1, 2)], 1), at_least([(1, 1), (-1, 2)], 0)]
    with pytest.raises(RefusedError, match="there is no rule"):
        check_log(formula, f"{HEADER}\nf 2\n{line}\nrup >= 1 ;\nc 3\n")


def test_constraints_known_at_one_time_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = [at_least([(1, 1)], 1), at_least([(1, -1)], 1)]
    monkeypatch.setattr(cutting_planes, "MAX_HELD_TERMS", 10)
    forgetful = "\n".join([HEADER, "f", *(f"l 1\nd {n}" for n in range(3, 40)), "pol 1 2 +", "c 40", ""])
    assert check_log(formula, forgetful) == 40
    with pytest.raises(RefusedError, match="10 at one time"):
        check_log(formula, "\n".join([HEADER, "f", *["l 1"] * 37, "pol 1 2 +", "c 40", ""]))


def test_a_small_refutation() -> None:
    """x + y >= 1, x + not y >= 1, not x >= 1."""
    formula = [at_least([(1, 1), (1, 2)], 1), at_least([(1, 1), (1, -2)], 1), at_least([(1, -1)], 1)]
    assert check_log(formula, f"{HEADER}\nf 3\npol 1 2 + 2 d\npol 4 3 +\nc 5\n") == 5
    assert check_log(formula, f"{HEADER}\nf 3\nrup >= 1 ;\nc 4\n") == 4
    for kept in ([0, 1], [0, 2], [1, 2]):
        with pytest.raises(RefusedError):
            check_log([formula[i] for i in kept], f"{HEADER}\nf 2\nrup >= 1 ;\nc 3\n")


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.json")))
def test_recorded_logs_are_accepted_and_say_nothing_of_a_lower_claim(name: str, tmp_path: Path) -> None:
    proved = check_file(LOGS / f"{name}.json")
    assert proved[-1].startswith("so the optimum is ")
    for suffix in (".json", ".pbp"):
        shutil.copy(LOGS / f"{name}{suffix}", tmp_path)
    document = json.loads((tmp_path / f"{name}.json").read_text())
    cost = document["claims"][-1]["cost"]
    # a higher claim by the same log, a lower capacity, another first task, another log
    for change in ("cost", "capacity", "first", "log"):
        changed = json.loads(json.dumps(document))
        proof = changed["claims"][-1]["proof"]
        if change == "cost":
            changed["claims"] = [{**changed["claims"][-1], "cost": cost + 1}]
        elif change == "capacity":
            if cost == read_game(document["statement"]["game"], "game").compulsory:
                continue  # true at any capacity
            changed["claims"] = changed["claims"][-1:]
            changed["statement"]["game"]["capacity"] += 2
        elif change == "first":
            proof["symmetries"] = []
        else:
            proof["log"]["sha256"] = "0" * 64
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        with pytest.raises(RefusedError):
            check_file(tmp_path / "changed.json")


def test_the_formula_beside_is_the_one_that_is_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((LOGS / "gemm-2x2x2-s6.json").read_text())
    shutil.copy(LOGS / "gemm-2x2x2-s6.pbp", tmp_path)
    claim = document["claims"][-1]
    proof = claim["proof"]
    true = Formula(read_game(document["statement"]["game"], "game"), claim["cost"] - 1, proof["first"]).opb()

    def verified(text: str) -> bool:
        (tmp_path / "c.opb").write_text(text)
        proof["formula"] = {"file": "c.opb", "sha256": hashlib.sha256(text.encode()).hexdigest()}
        (tmp_path / "c.json").write_text(json.dumps(document))
        return main(["verify", str(tmp_path / "c.json")]) == 0

    assert verified(true)
    *rest, cost = true.splitlines(keepends=True)
    for other in ("".join(rest), "".join([*rest, rest[-1], cost]), true.replace("+1 x1 ", "+1 x2 ", 1), true + "\n"):
        assert not verified(other)
        assert "it is not the formula that the game and the cost give" in capsys.readouterr().err
    claim["cost"] += 1
    assert not verified(true)


@pytest.mark.parametrize("seed", range(12))
def test_edited_logs_never_refute_a_formula_with_a_solution(seed: int) -> None:
    """The formula 'costs no more than the optimum' has a solution: no edit of the log for one less may pass."""
    rnd = random.Random(seed)
    document = json.loads((LOGS / "gemm-2x2x2-s6.json").read_text())
    game = read_game(document["statement"]["game"], "game")
    claim = document["claims"][-1]
    true = Formula(game, claim["cost"], claim["proof"]["first"]).constraints
    lines = (LOGS / "gemm-2x2x2-s6.pbp").read_text().splitlines()
    for _ in range(20):
        edited = list(lines)
        for _ in range(rnd.randint(0, 3)):
            at = rnd.randrange(1, len(edited))
            said = edited[at].split()
            said[rnd.randrange(len(said))] = rnd.choice(["1", "2", "d", "*", "+", "s", "x1", "~x7", "pol", "rup", "c"])
            edited[at] = " ".join(said)
        with pytest.raises(RefusedError):
            check_log(true, "\n".join(edited))


def test_a_game_whose_formula_would_not_fit_is_refused() -> None:
    names = [f"x{i}" for i in range(5000)]
    tasks = [[f"y{t}", 5000 + t, list(range(5000)), []] for t in range(40)]
    values = [[name, 1, "input"] for name in names] + [[f"y{t}", 1, "output"] for t in range(40)]
    game = read_game({"variant": "one-shot", "capacity": 6000, "values": values, "tasks": tasks}, "game")
    with pytest.raises(RefusedError, match="its formula would have"):
        Formula(game, 10, [0])


def test_symmetries_are_checked() -> None:
    document = json.loads((LOGS / "gemm-2x2x2-s6.json").read_text())
    game = read_game(document["statement"]["game"], "game")
    proof = document["claims"][-1]["proof"]
    assert check_first(game, proof["first"], proof["symmetries"], "at") == [0]
    identity = list(range(len(game.names)))
    swapped = [1, 0, *identity[2:]]
    collapsed = [0, 0, *identity[2:]]
    for wrong in ([identity], [swapped], [collapsed], [identity[:-1]], [[*identity[:-1], 99]]):
        with pytest.raises(RefusedError):
            check_first(game, [0], wrong, "at")
    assert check_first(game, list(range(8)), [], "at") == list(range(8))


@needs_exact
@pytest.mark.parametrize(
    "game",
    [
        *(["gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", str(s)] for s in (4, 5, 6)),
        ["ffn", "--tokens", "1", "--d-model", "2", "--hidden", "2", "--capacity", "4"],
        ["fft", "--size", "4", "--capacity", "4"],
    ],
)
def test_a_log_is_found_and_verified(game: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", *game, "--certificate", str(tmp_path / "c.json"), "--proof-log"]) == 0
    spec = capsys.readouterr()
    assert "Exact looks for a refutation of 'costs less than " in spec.err and "checking it: cutting planes" in spec.err
    assert f"certificate{tmp_path}" in "".join(spec.out.split())
    assert main(["verify", str(tmp_path / "c.json")]) == 0
    assert "So the optimum is" in capsys.readouterr().out
    assert (tmp_path / "c.opb").read_text().startswith("* #variable=")


def test_a_log_has_no_name_while_the_solver_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a solver that is ended, in whatever way, leaves nothing of it on the disk."""

    def make(options: list[tuple[str, str]]) -> SimpleNamespace:
        log = Path(dict(options)["proof-log"]).with_suffix(".proof").open("w")

        def run(optimise: bool) -> str:
            assert list(tmp_path.iterdir()) == []
            print("a log", file=log, flush=True)
            return "UNSAT"

        return SimpleNamespace(addVariable=print, addConstraint=print, runFull=run)

    monkeypatch.setitem(sys.modules, "exact", SimpleNamespace(Exact=make))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_exact(2, [([(1, 1), (1, -2)], 1)]) == ("UNSAT", "a log\n")
    assert list(tmp_path.iterdir()) == []


def test_a_refutation_says_what_it_does_and_when_its_time_is_over() -> None:
    document = json.loads((LOGS / "gemm-2x2x2-s6.json").read_text())
    claim, spec = document["claims"][-1], list[str]()
    game = read_game(document["statement"]["game"], "game")
    with pytest.raises(GapOpenError, match=r"no refutation of 'costs less than 12' \(8 computations, .* in 1e-09 s"):
        refute(game, claim["cost"], claim["proof"]["first"], 1e-9, spec.append)
    assert [stage.partition(" (")[0] for stage in spec] == ["Exact looks for a refutation of 'costs less than 12'"]


def test_a_log_without_a_certificate_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "5", "--proof-log"]) == 2
    assert "add --certificate" in capsys.readouterr().err


def test_without_its_solver_no_log_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pebble.proof.refutation.find_spec", lambda name: None)
    monkeypatch.setattr("pebble.cli.solve.solve", lambda *given, **named: pytest.fail("it was solved in vain"))
    game = ["gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "5"]
    assert main(["solve", *game, "--certificate", str(tmp_path / "c.json"), "--proof-log"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "pip install 'exact>=2.2'" in said.err


def test_games_without_a_formula_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pebble.proof.refutation.check_can_log", lambda: None)  # as where the solver is installed
    game = ["diamond", "--size", "3", "--capacity", "4", "--variant", "recompute"]
    assert main(["solve", *game, "--certificate", str(tmp_path / "c.json"), "--proof-log"]) == 2
    assert "one-shot or in-place" in capsys.readouterr().err
