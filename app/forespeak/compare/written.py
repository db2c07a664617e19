"""A report as Markdown, and as HTML that needs nothing beside itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from forespeak.compare.charts import DARK_LINES
from forespeak.compare.document import Block, Bullets, Chart, Heading, Quote, Table, Text
from forespeak.compare.table import WIDTH, aligned, wrapped

_STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem;
  background: Canvas; color: CanvasText; overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; margin: 1rem 0; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.3rem 0.6rem; text-align: right; border-bottom: 1px solid
  color-mix(in srgb, CanvasText 20%, Canvas); font-variant-numeric: tabular-nums; overflow-wrap: normal; }}
td {{ white-space: nowrap; }}
th {{ vertical-align: bottom; }}
th span {{ display: inline-block; width: max-content; max-width: 13rem; overflow-wrap: anywhere; }}
th:first-child, td:first-child {{ text-align: left; white-space: normal; overflow-wrap: break-word; min-width: 9rem;
  max-width: 22rem; }}
figure {{ margin: 1.5rem 0; overflow-x: auto; }}
figcaption {{ font-weight: 600; }}
svg {{ width: 100%; min-width: 40rem; height: auto; font: 13px system-ui, sans-serif; fill: currentColor; }}
svg .small {{ font-size: 11px; }}
svg .line {{ stroke: currentColor; stroke-width: 1.2; fill: none; }}
svg .halo {{ stroke: Canvas; stroke-width: 4; fill: none; }}
svg .grid {{ stroke: currentColor; stroke-opacity: 0.2; fill: none; }}
svg .frame {{ stroke: currentColor; stroke-opacity: 0.5; stroke-width: 0.7; }}
svg rect.frame:not([fill]) {{ fill: none; }}
svg .mark {{ stroke: currentColor; stroke-width: 0.8; }}
{DARK_LINES}
pre {{ white-space: pre-wrap; padding: 0.8rem; border-left: 3px solid color-mix(in srgb, CanvasText 30%, Canvas); }}
@media print {{
  body {{ font-size: 12px; margin: 0; max-width: none; }}
  table {{ font-size: 10px; }}
  svg {{ min-width: 0; }}
  .wide, figure {{ overflow: visible; }}
  th, td {{ padding: 0.2rem 0.3rem; }}
  td {{ white-space: normal; overflow-wrap: break-word; }}
  th:first-child, td:first-child {{ min-width: 0; }}
  th span {{ width: auto; overflow-wrap: break-word; }}
  figure, tr {{ break-inside: avoid; }}
  h1, h2, h3, summary {{ break-after: avoid; }}
  details::details-content {{ content-visibility: visible; block-size: auto; }}
}}
"""


def markdown_of(blocks: Sequence[Block]) -> str:
    """Charts are left out: their figures stand in the tables."""
    texts = [text for block in blocks if (text := _markdown(block))]
    return "\n\n".join(texts) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_plain(text)}"
        case Text(text):
            return _plain(text)
        case Bullets(lines):
            return "\n".join(f"- {_plain(line)}" for line in lines)
        case Table(head, rows):
            ruler = [":---", *["---:"] * (len(head) - 1)]
            written = [list(map(_plain, head)), ruler, *(list(map(_plain, row)) for row in rows)]
            return "\n".join(f"| {' | '.join(cells)} |" for cells in written)
        case Quote(title, text):
            # A fence longer than any within.
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
            return f"**{_plain(title)}**\n\n{fence}text\n{text}\n{fence}"
        case Chart():
            return ""


def _plain(text: str) -> str:
    """On one line, and without meaning anything to Markdown."""
    # An address would become a link of its own.
    line = re.sub(r"([\\`*_\[\]<>#|~&$]|:(?=//))", r"\\\1", " ".join(text.split()))
    # What would begin a list of its own.
    return re.sub(r"^(\d*)([-+.)])(?=\s|$)", r"\1\\\2", line)


def text_of(blocks: Sequence[Block]) -> str:
    """For a terminal: charts and quoted words are left out, and tables are aligned."""
    texts = [text for block in blocks if (text := _text(block))]
    return "\n\n".join(texts) + "\n"


def _text(block: Block) -> str:
    match block:
        case Heading(_, text):
            return wrapped(text)
        case Text(text):
            return wrapped(text)
        case Bullets(lines):
            return "\n".join(wrapped(f"  {line}", "    ") for line in lines)
        case Table(head, rows):
            return "\n\n".join("\n".join(aligned(part)) for part in _narrow([head, *rows]))
        case _:
            return ""


def _narrow(rows: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """As many tables as it takes to keep each within WIDTH, if that can be; the first column stands in all of them."""
    widths = [max(len(row[column]) for row in rows) + 2 for column in range(len(rows[0]))]
    parts: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if parts[-1] and widths[0] + sum(widths[each] for each in parts[-1]) + widths[column] - 2 > WIDTH:
            parts.append([])
        parts[-1].append(column)
    return [[[row[0], *(row[column] for column in part)] for row in rows] for part in parts]


def html_of(blocks: Sequence[Block]) -> str:
    """One file, light or dark as the reader's system; nothing in it is fetched or run."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Comparison")
    body = "\n".join(map(_html, blocks))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} dir="auto">{escape(text)}</h{level}>'
        case Text(text):
            return f"<p>{escape(text)}</p>"
        case Bullets(lines):
            return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
        case Table(head, rows):
            top = "".join(f'<th dir="auto"><span>{escape(each)}</span></th>' for each in head)
            rest = "".join(
                "<tr>" + "".join(f'<td dir="auto">{escape(each)}</td>' for each in row) + "</tr>" for row in rows
            )
            table = f"<table><thead><tr>{top}</tr></thead><tbody>{rest}</tbody></table>"
            return f'<div class="wide">{table}</div>'
        case Quote(title, text):
            summary, words = f'<summary dir="auto">{escape(title)}</summary>', f'<pre dir="auto">{escape(text)}</pre>'
            return f"<details>{summary}{words}</details>"
        case Chart(title, svg):
            return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"
