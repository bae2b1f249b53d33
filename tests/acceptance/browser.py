"""A browser for tests of the pages: Debian's chromium, what its console says, and what axe finds."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright import sync_api
from playwright.sync_api import sync_playwright

from tests.processes import PATIENCE

WIDE = (1280, 900)
PHONE = (390, 844)
# What the system of a viewer may prefer.
Colors = Literal["light", "dark"]
COLORS: tuple[Colors, Colors] = ("light", "dark")
_PREFERENCE = "matchMedia('(prefers-color-scheme: dark)')"
# Other impacts are "minor" and "moderate".
_SERIOUS = ("serious", "critical")
sync_api.expect.set_options(timeout=1000 * PATIENCE)


@dataclass
class Browser:
    """A browser that opens pages one after the other in the same tab, which keeps the code that it has compiled."""

    chromium: sync_api.Browser
    said: list[str] = field(default_factory=list)
    """What the console of any page has said, uncaught errors included; nothing, where all is well. What a busy service
    has put off until later, and then answered, is well."""
    asked: list[str] = field(default_factory=list)
    """The URLs that any page has asked for, also those of answers that the browser still had."""
    _put_off: set[str] = field(default_factory=set)
    _tab: sync_api.Page | None = None

    def open(self, url: str, size: tuple[int, int] = WIDE, color_scheme: Colors = "light") -> sync_api.Page:
        """A page at a URL, loaded, in the place of the one before."""
        page = self._tab = self._tab or self.new_tab()
        width, height = size
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        page.goto(url)
        return page

    def new_tab(self) -> sync_api.Page:
        """An empty page with a cache, a storage and a clock of its own."""
        page = self.chromium.new_context().new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on(
            "console", lambda message: self.said.append(f"{message.type}: {message.text} {message.location['url']}")
        )
        page.on("pageerror", lambda error: self.said.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("response", self._answered)
        return page

    def _answered(self, response: sync_api.Response) -> None:
        """Forget what the console said of an answer that was put off, now that it is there, and the first request."""
        if response.status == 503 and "retry-after" in response.headers:
            self._put_off.add(response.url)
            self.asked.remove(response.url)
        elif response.ok and response.url in self._put_off:
            self._put_off.remove(response.url)
            refusal = re.compile(rf"error: .* status of 503 .*{re.escape(response.url)}")
            self.said[:] = [message for message in self.said if not refusal.fullmatch(message)]

    def reset(self) -> None:
        """Forget what a test has done; the tab that tests share keeps what the browser has cached."""
        for context in self.chromium.contexts:
            if self._tab is None or context != self._tab.context:
                context.close()
        if self._tab is not None:
            _leave(self._tab)
        self.said.clear()
        self._put_off.clear()
        self.asked.clear()


def _leave(page: sync_api.Page) -> None:
    """Leave a page without a trace of it in the tab."""
    page.unroute_all()
    # An empty page, or one that could not be loaded, has no storage.
    if page.url.startswith("http"):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    page.context.clear_cookies()
    page.context.clear_permissions()
    page.goto("about:blank")


def look(page: sync_api.Page, size: tuple[int, int], colors: Colors) -> None:
    """Have a page that is open look as it does in a window of another size, and in other colours."""
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    if page.evaluate(f"({_PREFERENCE}).matches") != (colors == "dark"):
        # The page listens for that change, too, and was told first.
        changed = f"new Promise((done) => {_PREFERENCE}.addEventListener('change', done, {{once: true}}))"
        page.evaluate(f"() => {{ window.recoloured = {changed}; }}")
        page.emulate_media(color_scheme=colors)
        page.evaluate("() => window.recoloured.then(() => null)")


def barriers(page: sync_api.Page) -> list[str]:
    """What axe finds serious or critical on a page as it is now, with the elements that it means."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    # What it finds in order is long, and stays in the browser.
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then(({violations}) => violations)")
    return [
        f"{one['id']} ({one['impact']}): {node['html']}"
        for one in found
        if one["impact"] in _SERIOUS
        for node in one["nodes"]
    ]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One process of the browser for a module. Playwright keeps an event loop running in the thread of the tests."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("There is no chromium on PATH; Debian's package `chromium` has it.")
    with sync_playwright() as playwright:
        # Chromium's own sandbox cannot be set up as root; the pages are ours.
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield Browser(launched)
        finally:
            launched.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A browser that remembers nothing of other tests."""
    yield chromium
    chromium.reset()
