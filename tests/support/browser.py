"""Airflow's pages in a real Chromium, used as a person would use them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect, sync_playwright

from tests.support.airflow_client import AirflowClient

PICTURES = os.environ.get("PICTURES")
"""Folder for the pictures in the docs, if they are to be renewed."""
_LONGEST_MS = 60_000
_SIZE = {"width": 1400, "height": 900}


@dataclass
class Person:
    """A logged-in user."""

    airflow: AirflowClient
    page: Page

    def open_form(self, dag: str) -> Locator:
        """Opens the form that triggers ``dag``."""
        self.page.goto(f"{self.airflow.address}/dags/{dag}")
        self.page.get_by_role("button", name="Trigger").first.click()
        form = self.page.get_by_role("dialog")
        expect(form.get_by_role("button", name="Trigger")).to_be_enabled()
        return form

    def submit(self, form: Locator, dag: str) -> str:
        """Submits the form and returns the id of the run that it starts."""
        form.get_by_role("button", name="Trigger").click()
        self.page.wait_for_url(f"**/dags/{dag}/runs/**")
        return self.page.url.rpartition("/runs/")[2].partition("/")[0].partition("?")[0]

    def mark_failed(self, dag: str, run: str, task: str) -> None:
        """Marks a task failed."""
        self.page.goto(f"{self.airflow.address}/dags/{dag}/runs/{run}/tasks/{task}")
        self.page.get_by_role("button", name="Mark Task Instance as").click()
        self.page.get_by_role("menuitem", name="Failed").click()
        self.page.get_by_role("dialog").get_by_role("button", name="Confirm").click()
        expect(self.page.get_by_role("dialog")).to_have_count(0)

    def open_page(self, name: str) -> FrameLocator:
        """Opens a page of adloom through the navigation."""
        self.page.goto(self.airflow.address)
        self.page.get_by_role("link", name=name, exact=True).click()
        return self.page.frame_locator("iframe").first

    def click_through_refresh(self, element: Locator, answer: str) -> None:
        """Presses on ``element``, waits until its page has rendered the next response from ``answer``, and releases."""
        element.hover()
        with self.page.expect_response(answer) as refreshed:
            self.page.mouse.down()
        refreshed.value.finished()
        element.evaluate("() => new Promise(requestAnimationFrame)")
        self.page.mouse.up()

    def picture(self, name: str) -> None:
        """Takes a picture for the docs, if there is a folder for them."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The Chromium installed on this machine."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "no Chromium found: install it (Debian: apt-get install chromium)"
    expect.set_options(timeout=_LONGEST_MS)  # a busy machine may need more than the default of 5 s
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work for root in a container; only pages on loopback are opened.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def log_in(browser: Browser, airflow: AirflowClient, user: str) -> Person:
    """Logs ``user`` in, in a browser context of their own."""
    page = browser.new_context(viewport=_SIZE).new_page()  # type: ignore[arg-type] # a dict of two numbers
    page.set_default_timeout(_LONGEST_MS)
    page.goto(airflow.address)
    page.get_by_label("Username").fill(user)
    page.locator("input[type=password]").fill(airflow.password(user))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{airflow.address}/")
    return Person(airflow, page)
