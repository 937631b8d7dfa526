"""Certificates: what they prove, checked while the page is made, and a link that saves each from the page."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from pebble.errors import PebbleError
from pebble.reports.verify import verify
from pebble.webpage.documents import Document, Fields

MAX_CHECKED_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Listed:
    """A certificate on the page.

    Attributes
    ----------
    name : str
        Of the file.
    verdict : str
        ``verified``, ``refused`` or ``not checked``.
    sentences : tuple of str
        What it proves, or why not.
    link : str
        A ``data:`` address of its text; empty where there is none to save.
    """

    name: str
    verdict: str
    sentences: tuple[str, ...]
    link: str


def listed(document: Document) -> Listed:
    """A certificate, checked by the stand-alone checker; or what ``pebble verify --json`` said of one.

    Raises
    ------
    InputError
        A verdict that is none.
    """
    fields = Fields(document.data, document.name)
    if document.kind == "verify":
        proved = fields.texts("proved")
        accepted = document.data["verified"] is True
        why = f"refused at {fields.text('step', '?')}: {fields.text('why', '?')}"
        # its word only: what was checked is not here
        return Listed(document.name, "not checked", tuple(proved) if accepted else (why,), "")
    link = "data:application/json;base64," + base64.b64encode(document.text.encode()).decode()
    if len(document.text) > MAX_CHECKED_BYTES:
        return Listed(document.name, "not checked", ("it is large: run `pebble verify` on it",), link)
    try:
        return Listed(document.name, "verified", verify(dict(document.data)).proved, link)
    except PebbleError as error:
        return Listed(document.name, "refused", (str(error),), link)
