"""``ncu model``: the model that a report of a whole forward pass is of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pebble.counters import Profile, read_profile
from pebble.counters.architecture import ALLOWED, READS, Architecture, architectures
from pebble.counters.datatypes import TypeVerdict, data_type
from pebble.counters.forward import ForwardPass, forward_pass
from pebble.counters.models import HeadsVerdict, ModelFit, heads_of, models_beside
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.workloads.named import model_shape

_STEP = 64  # widths are multiples of it


@dataclass(frozen=True, repr=False)
class RecognisedModel(Report):
    """What ``pebble ncu model`` found.

    Attributes
    ----------
    profile : Profile
    found : ForwardPass
        The layers.
    fits : tuple of Architecture
        The dimensions that fit, best first; where none does, the nearest.
    """

    profile: Profile
    found: ForwardPass
    fits: tuple[Architecture, ...]

    question = "ncu model"

    @property
    def best(self) -> Architecture | None:
        """The dimensions, if any fit: of several those of a named model first."""
        return self._chosen[0] if self._chosen else None

    @property
    def heads(self) -> HeadsVerdict | None:
        """What the attention says of heads."""
        return self._chosen[1] if self._chosen else None

    @property
    def beside(self) -> tuple[ModelFit, ...]:
        """The named models, those that differ in least first."""
        return self._chosen[2] if self._chosen else ()

    @cached_property
    def _chosen(self) -> tuple[Architecture, HeadsVerdict, tuple[ModelFit, ...]] | None:
        results = []
        for fit in self.fits:
            if fit.off <= ALLOWED:
                heads = heads_of(self.found, fit)
                results.append((fit, heads, models_beside(fit, heads)))
        return min(results, key=lambda one: len(one[2][0].differs), default=None)

    @property
    def models(self) -> tuple[str, ...]:
        """The named models that fit."""
        return tuple(model.name for model in self.beside if not model.differs)

    @property
    def data_type(self) -> TypeVerdict:
        """The type that its layers' products multiply in; of the first product that differs, where they do."""
        verdicts = [data_type(role[0].launch) for role in (*self.found.inputs, *self.found.after)]
        types = tuple(dict.fromkeys(kind for verdict in verdicts for kind in verdict.types))
        told = [verdict for verdict in verdicts if len(verdict.types) == 1]
        if len(types) > 1 and len(told) == len(verdicts):
            return TypeVerdict(types, "the products of a layer are not all of one type")
        first = told[0] if len(told) == len(verdicts) else next(v for v in verdicts if len(v.types) != 1)
        return replace(first, evidence=f"of one product, {first.evidence}")

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """What the counters leave open, and what would decide it."""
        best, heads = self.best, self.heads
        if best is None or heads is None:
            return ()
        said = []
        if len(self.fits) > 1:
            several = ", or ".join(
                f"{width(f.hidden)} with {f.tokens:.0f} tokens ({f.input_bytes}-byte values)" for f in self.fits
            )
            first = f" ({width(best.hidden)} is a named model's)" if self.models else ""
            said.append(f"width {several}{first}: `--tokens`, or counters of the data type, decide")
        if len(self.models) > 1:
            said.append(f"models {' or '.join(self.models)}: the same layers; the projection to the vocabulary decides")
        elif best.vocabulary is None:
            which = f"model {self.models[0]} or another of these widths, which may be an encoder" if self.models else (
                "layers and vocabulary"
            )  # fmt: skip
            said.append(
                f"{which}: the report has no projection to a vocabulary, which would decide; if it was cut off before, "
                "there are more layers"
            )
        if len(heads.readings) > 1 and len(self.models) != 1:
            said.append("heads")
        if self.data_type.ambiguous:
            said.append("data type")
        return tuple(said)

    def summary(self) -> str:
        best = self.best
        if best is None:
            off = f", readings of one width differ by {self.fits[0].off:.0%} at best" if self.fits else ""
            return f"no layer fits{off} ({ALLOWED:.0%} allowed)"
        hidden = model_shape(self.models[0]).hidden if self.models else width(best.hidden)
        least = "at least " * (best.vocabulary is None)
        size = f"{least}{best.layers} layers of width {hidden}, {_amount(best.weights)} weights in products"
        if len(self.fits) > 1:
            named = f" ({' or '.join(self.models)})" if self.models else ""
            return f"ambiguous: {size}{named}, or others"
        if len(self.models) == 1 and best.vocabulary is not None:
            return f"{self.models[0]}: {size}"
        if self.models:
            return f"ambiguous: {' or '.join(self.models)}{' or another' * (len(self.models) == 1)}: {size}"
        near = self.beside[0]
        return f"{size}, of no named model; {near.name} has {', '.join(near.differs[:3])}"

    def rows(self) -> list[dict[str, Any]]:
        """A row for each set of dimensions that fits."""
        return [
            {
                "layers": fit.layers, "tokens": fit.tokens, "hidden": width(fit.hidden),
                "intermediate": width(fit.intermediate), "gated": fit.gated,
                "vocabulary": None if fit.vocabulary is None else round(fit.vocabulary),
                "input_bytes": fit.input_bytes, "output_bytes": fit.output_bytes, "weights": fit.weights,
                "off": fit.off, "rests_on": list(fit.by),
            }
            for fit in self.fits
        ]  # fmt: skip

    def document(self) -> dict[str, Any]:
        heads = self.heads
        return {
            "file": self.profile.path,
            "verdict": self.summary(),
            "layers": self.found.layers,
            "passes": self.found.passes,
            "models": list(self.models),
            "nearest": [{"model": m.name, "differs": list(m.differs)} for m in self.beside[:3]],
            "fits": self.rows() if self.best else [],
            "heads": [] if heads is None else [
                {"heads": h.heads, "key_heads": h.key_heads, "head_dim": h.dim} for h in heads.readings
            ],
            "heads_by": [] if heads is None else list(heads.evidence),
            "data_types": list(self.data_type.types),
            "data_type": self.data_type.text,
            "ambiguous": list(self.ambiguous),
            "allowed": ALLOWED,
            "off": self.fits[0].off if self.fits else None,
            "notes": list(self.notes),
        }  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the answer."""
        best = self.best
        reads = best is not None and READS in best.by
        cold = ("K is told by reads of DRAM: an L2 that was not emptied, or operands read twice, would change it",)
        return self.found.notes + cold * reads + self.profile.notes


def width(value: float) -> int:
    """A width as a multiple of `_STEP` where it is near one."""
    stepped = round(value / _STEP) * _STEP
    return stepped if stepped and abs(value / stepped - 1) <= ALLOWED / 5 else round(value)


def _amount(weights: float) -> str:
    return f"{weights / 1e9:.1f} billion" if weights >= 1e9 else f"{weights / 1e6:.0f} million"


def recover_model(path: str | Path, tokens: int | str | None = None) -> RecognisedModel:
    """The model whose forward pass a report is of.

    Parameters
    ----------
    path : str or Path
        A report of Nsight Compute of every kernel of a forward pass.
    tokens : int, optional
        Rows of the products (batch times length), where known.

    Raises
    ------
    InputError
        A report that is damaged, of several GPUs, of less than two layers, or lacks the counters.
    """
    rows = None if tokens is None else whole("--tokens", tokens, 1, 2**20)
    profile = read_profile(path)
    found = forward_pass(profile)
    return RecognisedModel(profile, found, architectures(found, rows))
