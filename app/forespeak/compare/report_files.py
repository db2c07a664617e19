"""A comparison's report as a text of each kind that can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forespeak.compare.document import document_of
from forespeak.compare.lane_report import report_csv, report_json
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.written import html_of, markdown_of

KINDS = ("md", "json", "csv", "html")


def report_of(
    kind: str,
    result: ComparisonResult,
    models: Sequence[Mapping[str, Any]],
    *,
    private: bool = False,
    comparison_id: str | None = None,
    name: str = "",
) -> str:
    """One of KINDS. `models` are those of `model_files.model_records`; a CSV has none.

    `private`: with the words of private prompts and of the replies to them. Folders of models are left out in any case.
    """
    if kind == "csv":
        return report_csv(result)
    if kind == "json":
        return report_json(result, models, private=private, comparison_id=comparison_id, name=name)
    write = {"md": markdown_of, "html": html_of}[kind]
    return write(document_of(result, models, private=private, name=name))
