"""What the site needs beyond its plugins: formulas as MathML, lists of generated pages, and checks of what was built."""

import logging
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.hf_vat")  # warnings end a strict build

ROOT = Path(__file__).resolve().parents[2]
# Kept where the commands that make them write them.
BORROWED = {"model_card_explanations.svg": ROOT / "model_cards" / "quickstart-VAT" / "model_card_explanations.svg"}
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


def on_config(config):
    """`folder/*.md` in the navigation stands for the pages of the folder, which commands write."""
    for section in config.nav:
        for title, pages in section.items():
            if isinstance(pages, list):
                section[title] = [found for page in pages for found in _pages(Path(config.docs_dir), page)]
    return config


def _pages(docs: Path, page) -> list:
    if not isinstance(page, str) or "*" not in page:
        return [page]
    found = sorted(path.relative_to(docs).as_posix() for path in docs.glob(page))
    return [{f"{name.split('/')[0].capitalize()}: {Path(name).stem}": name} for name in found]


def on_files(files, config):
    for name, path in BORROWED.items():
        files.append(File.generated(config, f"figures/{name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, **kwargs):
    """Pages that a command wrote link to the folder of other such pages."""
    return markdown.replace("](../heads)", "](../measurements.md)")


def on_page_content(html, page, **kwargs):
    """Formulas become MathML, which browsers draw without a script."""

    def formula(match: re.Match) -> str:
        display = "block" if match[1] == "div" else "inline"
        drawn = convert(unescape(match[2]).strip(), display=display)
        if "\\" in re.sub(r"<[^>]+>", "", drawn):
            log.warning("%s has a formula with a command that is not known: %s", page.file.src_uri, match[2].strip())
        return f"<{match[1]} class='formula'>{drawn}</{match[1]}>"

    return _FORMULA.sub(formula, html)


def on_post_page(output, page, **kwargs):
    """Warn of what a reader should not meet: references in brackets, formulas in source, files of other servers."""
    seen = _Page()
    seen.feed(output)
    for sign in ("[`", "`]", "](", "\\(", "\\[", "Args:", "*optional*"):
        if sign in seen.text:
            place = seen.text.index(sign)
            log.warning("%s shows %r: %r", page.file.src_uri, sign, seen.text[max(0, place - 60) : place + 60])
    for address in seen.loads:
        if address.startswith(("http:", "https:", "//")):
            log.warning("%s loads %s", page.file.src_uri, address)
    return output


class _Page(HTMLParser):
    """The text of a page with its code left out, and what it loads."""

    def __init__(self):
        super().__init__()
        self.text, self.loads, self._code = "", [], 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in _LOADS and attributes.get("rel") != "canonical":
            self.loads.append(attributes.get(_LOADS[tag]) or "")
        self.text += "`" * (tag == "code")
        self._code += tag in ("pre", "code", "script", "style")

    def handle_endtag(self, tag):
        self._code -= tag in ("pre", "code", "script", "style")
        self.text += "`" * (tag == "code")

    def handle_data(self, data):
        if not self._code:
            self.text += data
