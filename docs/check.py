"""Check a built site: nothing is loaded from elsewhere, and every link within it leads somewhere.

python docs/check.py out/docs
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Tags that make a browser load something, and the attribute that names it.
LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "use": "href",
}
ELSEWHERE_IN_CSS = re.compile(r"""(url\(|@import)\s*["']?(https?:)?//""")
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and LOADING_LINKS & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        if LOADS.get(tag) in given:
            self.loads.append(given[LOADS[tag]])
        self.loads += [part.split()[0] for part in given.get("srcset", "").split(",") if part]


def is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def pages_of(site: Path) -> list[Path]:
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def faults_of(site: Path) -> list[str]:
    """What is wrong with the site, one sentence each."""
    pages = {path: Page(path.read_text()) for path in pages_of(site)}
    faults = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for address in page.loads:
            if is_elsewhere(address):
                faults.append(f"{where} loads {address} from elsewhere")
            elif not address.startswith("data:") and not _file(path, address).is_file():
                faults.append(f"{where} loads {address}, which does not exist")
        for address in page.links:
            if not urlsplit(address).scheme and not is_elsewhere(address):
                faults += _broken(where, path, address, pages)
    for sheet in sorted(site.rglob("*.css")):
        if ELSEWHERE_IN_CSS.search(sheet.read_text()):
            faults.append(f"{sheet.relative_to(site)} loads something from elsewhere")
    return faults


def _file(page: Path, address: str) -> Path:
    target = unquote(urlsplit(address).path)
    return (page.parent / target).resolve() if target else page


def _broken(where: Path, path: Path, address: str, pages: dict[Path, Page]) -> list[str]:
    target, anchor = _file(path, address), unquote(urlsplit(address).fragment)
    if not target.is_file():
        return [f"{where} links to {address}, which does not exist"]
    if anchor and target in pages and anchor not in pages[target].anchors:
        return [f"{where} links to {address}, but the page has no such anchor"]
    return []


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    faults = faults_of(site)
    for fault in faults:
        print(fault, file=sys.stderr)
    count = len(pages_of(site))
    print(f"{count} pages, {len(faults)} faults")
    return bool(faults) or not count


if __name__ == "__main__":
    sys.exit(main())
