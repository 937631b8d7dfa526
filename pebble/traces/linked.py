"""How loops that only other loops call are compiled: not made to run alone, but linked into those that call them.

Of each function numba makes a library, optimises it, translates it into machine code, and links and optimises it again
in the library of each caller. The machine code of a function that Python never calls is made in vain, and so is what is
optimised before it is merged: a third of the time that compiling a search of many functions takes.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def pipeline() -> Any:
    """The compiler of such a function, for numba's ``pipeline_class``; numba's own where it has not the parts for it.

    Only the library is another: nothing of the function's meaning depends on it.
    """
    compiler, codegen = import_module("numba.core.compiler"), import_module("numba.core.codegen")
    parts = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
    if not all(hasattr(codegen.JITCodeLibrary, name) for name in parts):
        return compiler.Compiler
    return _made()


@cache
def _made() -> Any:
    """The compiler: the usual passes, and one before lowering that chooses the library."""
    compiler, machinery = import_module("numba.core.compiler"), import_module("numba.core.compiler_machinery")
    passes = import_module("numba.core.typed_passes")
    library = _library()

    def run_pass(self: Any, state: Any) -> bool:
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library.merged = state.flags.forceinline
        return True

    def start(self: Any) -> None:
        machinery.LoweringPass.__init__(self)

    parts = {"_name": "choose_library", "__init__": start, "run_pass": run_pass}
    choose = type("_Choose", (machinery.LoweringPass,), parts)
    choose = machinery.register_pass(mutates_CFG=False, analysis_only=False)(choose)

    def define_pipelines(self: Any) -> list[Any]:
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.add_pass_after(choose, passes.IRLegalization)
        steps.finalize()
        return [steps]

    return type("LinkedOnly", (compiler.CompilerBase,), {"define_pipelines": define_pipelines})


def _library() -> Any:
    """A library of which machine code is made in its callers' libraries only; its environments exist before.

    An environment is a pointer to Python objects, which numba sets when it has compiled a function. Callers are linked
    with one of the same name.
    """
    codegen, binding = import_module("numba.core.codegen"), import_module("llvmlite.binding")

    def optimize(self: Any) -> None:
        if not self.merged:
            codegen.JITCodeLibrary._optimize_final_module(self)

    def finalize(self: Any) -> None:
        self._finalize_dynamic_globals()
        empty = str(self._codegen._create_empty_module(self.name))
        pointers = [str(x) for x in self._final_module.global_variables if x.name.startswith("_ZN08NumbaEnv")]
        self._environments = binding.parse_assembly("\n".join([empty, *pointers]))
        self._codegen._add_module(self._environments)
        self._codegen._engine.finalize_object()
        self._finalized = True

    def address(self: Any, name: str) -> int:
        self._ensure_finalized()
        return 0

    overrides = {
        "_optimize_final_module": optimize,
        "_finalize_final_module": finalize,
        "get_pointer_to_function": address,
    }
    return type("LinkedLibrary", (codegen.JITCodeLibrary,), overrides)
