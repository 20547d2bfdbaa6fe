"""How long the player takes for a large episode, in a headless Chromium.

    python -m thread_kit.bench.player [--threads 1000] [--tokens 10000]

Three numbers, each against its limit: seconds from the page's film to the whole episode on the
screen; frames a second while it steps token by token; seconds for a jump along the timeline. The
episode is made here: threads in chains of ten below the main thread, as many tokens in each.
Needs the extra `test` (playwright) and a Chromium.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.requests import Status
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Closed, Ended, GeneratedSpan, Returned, Spawned
from thread_kit.views.export_html import render_page

SHELL, WHOLE = Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")
CHROMIUM = SHELL if SHELL.exists() else WHOLE
"""The browser without windows of its own where there is one: two thirds of the processor time."""

OPENS, STEPS = 2.0, 10.0
"""Seconds that opening may take; steps a second that there must be at least."""

_MEASURE = """async ([steps]) => {
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const press = (key) =>
        document.querySelector(".tk-player")
            .dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await painted();
    const opened = performance.now() / 1000;
    const slider = document.querySelector(".tk-timeline input");
    const seek = async (share) => {
        slider.value = Math.floor(share * slider.max);
        slider.dispatchEvent(new Event("input"));
        await painted();
    };
    let begun = performance.now();
    for (const share of [0.2, 0.8, 0.1, 0.5]) await seek(share);
    const jump = (performance.now() - begun) / 4000;
    begun = performance.now();
    for (let n = 0; n < steps; n++) {
        press("t");
        await painted();
    }
    const rate = steps / ((performance.now() - begun) / 1000);
    return { opened, jump, rate, rows: document.querySelectorAll(".tk-row").length };
}"""


def large_episode(threads: int, tokens: int) -> Episode:
    """An episode of so many threads and generated tokens."""
    episode = Episode({"model": {"name": "made for a measurement"}})
    each = max(tokens // threads, 4)
    number = 0

    def span(provenance: Provenance, text: str, size: int) -> Span:
        return Span(provenance, text, tuple(range(size)))

    def wrote(thread: int, size: int, stop: Stop) -> None:
        text = " word" * (size - 1) + (" =>" if stop is Stop.LISTEN else "#END#")
        lengths = (*[5] * (size - 1), len(text) - 5 * (size - 1))
        made = span(Provenance.GENERATED, text, size)
        episode.add(GeneratedSpan(thread, made, stop, 10, size, 0.1, lengths))

    def begin(parent: int | None) -> int:
        nonlocal number
        at = len(episode.threads[parent].sequence) if parent is not None else 0
        text = f"Prompt:\nI need part {number} of the work. =>\n\nResponse:\n#START#\n"
        episode.add(Spawned(number, parent, at, span(Provenance.CONTEXT, text, 12), ""))
        number += 1
        return number - 1

    # Chains of ten threads below thread 0, until there are enough.
    main = begin(None)
    while number < threads:
        chain = [main]
        while number < threads and len(chain) <= 10:
            wrote(chain[-1], each // 2, Stop.LISTEN)
            chain.append(begin(chain[-1]))
        for parent, child in reversed(list(pairwise(chain))):
            wrote(child, each // 2, Stop.END)
            episode.add(Ended(child, Status.ENDED, ""))
            back = span(Provenance.RETURNED, f"Part {child} is done.<=\n", 8)
            episode.add(Returned(parent, child, back, {}))
    wrote(main, each, Stop.END)
    episode.add(Ended(main, Status.ENDED, ""))
    episode.add(Closed(Status.ENDED, 1.0, "", 1.0))
    return episode


def measure(file: Path, steps: int = 60) -> dict[str, Any]:
    """Open a page of the player and step through it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(file.resolve().as_uri(), wait_until="commit")
        tab.wait_for_selector(".tk-row")
        measured = tab.evaluate(_MEASURE, [steps])
        browser.close()
    return measured


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m thread_kit.bench.player", description="Measure the player."
    )
    parser.add_argument("--threads", type=int, default=1_000)
    parser.add_argument("--tokens", type=int, default=10_000)
    options = parser.parse_args()
    if not CHROMIUM.exists():
        print(f"the player is not measured: there is no {CHROMIUM}")
        return
    episode = large_episode(options.threads, options.tokens)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "player.html")
        file.write_text(render_page(episode), encoding="utf-8")
        size = file.stat().st_size
        measured = measure(file)
    print(
        f"{len(episode.threads):,} threads, {episode.usage.generated:,} tokens, "
        f"page {size / 1e6:.1f} MB"
    )
    print(f"opens in {measured['opened']:.2f} s (limit {OPENS:g})")
    print(f"steps {measured['rate']:.0f} times a second (limit {STEPS:g})")
    print(f"jumps in {measured['jump']:.2f} s")


if __name__ == "__main__":
    main()
