"""``report``: documents of the program, as one page for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.errors import InputError, check_text
from pebble.reports.report import Report
from pebble.system.files import check_output, write_text
from pebble.webpage.documents import Document, read_documents, title_of
from pebble.webpage.page import page_of

_LONGEST_TITLE = 200


@dataclass(frozen=True, repr=False)
class WebPage(Report):
    """A page for a browser, all in one file.

    Attributes
    ----------
    title : str
    html : str
    sections : dict of str to int
        Each section that is there, and how many entries it has.
    sources : tuple of str
        Names of the files that it was made from.
    """

    title: str
    html: str
    sections: dict[str, int]
    sources: tuple[str, ...]

    question = "report"

    def summary(self) -> str:
        text = ", ".join(f"{name} {count}" for name, count in self.sections.items())
        return f"{self.title}: {len(self.html) / 1e6:.1f} MB; {text}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per section."""
        return [{"section": name, "entries": count} for name, count in self.sections.items()]

    def document(self) -> dict[str, Any]:
        return {
            "title": self.title, "sources": list(self.sources), "sections": self.sections,
            "page_bytes": len(self.html.encode("utf-8", "backslashreplace")),
        }  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises
        ------
        InputError
            Its name does not end in .html or .htm, or it cannot be written.
        """
        check_page(path)
        write_text(path, self.html, "--out: ")


def check_page(path: str | Path, option: str = "--out") -> None:
    """Refuse a file that could not be written, or whose name is not that of a page."""
    check_output(path, option, (".html", ".htm"))


def save_answer(answer: Report, path: str | Path) -> None:
    """The page of one answer, as of a file that holds it."""
    document = Document(f"{answer.question}.json", answer.question, answer.to_dict(), "")
    write_text(path, page_of([document], title_of([document]))[0], "--report: ")


def report(*sources: str | Path, title: str | None = None) -> WebPage:
    """One self-contained page for a browser, from documents that the program wrote.

    Parameters
    ----------
    *sources : str or Path
        Files: what compare, curve, bound, solve, replay, simulate, tune, audit and results print with ``--json``, a
        store of a sweep (.duckdb), certificates, and measured rows (.csv, with the columns of ``benchmarks/hardware``).
        Sections appear for what is there.
    title : str, optional
        Of the page; by default what its documents are about.

    Returns
    -------
    WebPage
        With ``.html`` and ``.save(path)``. It loads nothing from a network, and allows no script but its own.

    Raises
    ------
    InputError
        No file, too many, one that is too large or none of these.

    Examples
    --------
    >>> import json, pathlib, pebble, tempfile
    >>> found = pebble.compare(pebble.Gemm(1024, 1024, 1024), ["row", "hilbert"], cache="1MiB", sms=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "compare.json")
    ...     _ = path.write_text(json.dumps(found.to_dict()))
    ...     pebble.report(path).sections
    {'gap': 1, 'walks': 1}
    """
    spec = None if title is None else check_text("--title", title, "a text")
    if spec is not None and not 1 <= len(spec) <= _LONGEST_TITLE:
        raise InputError(f"--title: got {len(spec)} characters, expected 1 to {_LONGEST_TITLE}.")
    documents = read_documents(list(sources))
    spec = spec or title_of(documents)
    html, sections = page_of(documents, spec)
    return WebPage(spec, html, sections, tuple(document.name for document in documents))
