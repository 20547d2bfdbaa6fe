// The bar of the player: what is going on, the buttons, and the timeline. Nothing in it changes its
// height while an episode runs, so that what stands below keeps its place.

const SPEEDS = {
  "5 a second": 5,
  "20 a second": 20,
  "100 a second": 100,
  "1,000 a second": 1000,
  "as it comes": Infinity,
};
const [REST, OPEN] = ["#808080", "#e0701a"]; // a canvas hears of no change of theme: seen on both
const RECORDED = "20 a second"; // at first, for what is over, and for what is live
const LIVE = "as it comes";

class Bar {
  constructor(view) {
    this.view = view;
    this.status = make("span", { class: "tk-status", role: "status" });
    this.sums = make("span", { class: "tk-totals" });
    this.notes = make("div", { class: "tk-notes" });
    this.description = make("div", {
      class: "tk-description",
      role: "status",
      "aria-live": "polite",
      "aria-label": "what happened",
      tabindex: "0",
    });
    this.running = button("Run", () => view.asked || view.run(), { class: "tk-main" });
    this.stopping = button("Stop", () => this.canStop && view.stop());
    this.following = button("Follow", () => view.toggleFollow(), {
      title: "Always open the thread that is at work (o)",
    });
    this.forking = button("Fork here", () => view.forking.askHere(), { title: "f" });
    this.ablating = button("Ablations", () => view.switches.toggle(), {
      title: "Once more from its start, without variables, with another phi or psi (a)",
    });
    this.drawing = button("Figure", () => view.showFigure(view.figure ? "" : "tree"), {
      title: "The tree as a drawing, or the supplemental work (g, w)",
    });
    this.keys = make("div", { class: "tk-keys", tabindex: "0", role: "region", "aria-label": "keys and colours" });
    this.keys.hidden = true;
    this.asking = button("Keys and colours", () => this.toggleKeys(), { title: "?", "aria-expanded": false });
    this.speed = make(
      "select",
      { "aria-label": "speed", onchange: () => view.setSpeed(SPEEDS[this.speed.value]) },
      ...Object.keys(SPEEDS).map((name) => make("option", { value: name }, name)),
    );
    this.speed.value = Object.keys(SPEEDS).find((name) => SPEEDS[name] === view.speed);
    this.picture = make("canvas", { height: "22", "aria-hidden": "true" });
    // It has no width before the page is laid out, and another one when the page's changes.
    new ResizeObserver(() => this.latest && this.draw(...this.latest)).observe(this.picture);
    this.slider = make("input", {
      type: "range",
      min: "0",
      step: "1",
      "aria-label": "timeline",
      oninput: () => view.seek(Number(this.slider.value)),
    });
    this.element = make(
      "div",
      { class: "tk-bar" },
      make("div", { class: "tk-line" }, this.status, this.sums),
      make(
        "div",
        { class: "tk-line tk-controls" },
        make("span", { class: "tk-buttons" }, this.running, this.stopping),
        this.steps(),
        make("label", {}, "speed ", this.speed),
        make("span", { class: "tk-buttons" }, this.following, this.forking, this.ablating, this.drawing, this.asking),
      ),
      make("div", { class: "tk-timeline" }, this.picture, this.slider),
      ...[this.description, this.notes, this.keys],
    );
  }

  steps() {
    const step = ([unit, key]) =>
      make(
        "span",
        { class: "tk-step" },
        button("‹", () => this.view.step(unit, true), {
          "aria-label": `back by ${unit}`,
          title: `back by ${unit} (Shift+${key})`,
        }),
        button(`${unit} ›`, () => this.view.step(unit), {
          "aria-label": `step by ${unit}`,
          title: `step by ${unit} (${key})`,
        }),
      );
    const units = Object.entries({ token: "t", event: "e", thread: "d", spawn: "s" });
    return make("span", { class: "tk-steps", role: "group", "aria-label": "step" }, ...units.map(step));
  }

  // Built once and then only filled: a button that is replaced loses its click, and one that is
  // disabled loses the focus.
  show() {
    const { view } = this;
    const { now, recording } = view.track();
    const [state] = view.states.slice(-1);
    const phase = this.phase(now, state);
    if (this.status.textContent !== phase.textContent) this.status.replaceChildren(phase);
    const writes = !view.isAtEnd && view.isLive ? "the model writes on · " : "";
    this.sums.textContent = this.sums.title = writes + state.totals;
    this.following.setAttribute("aria-pressed", view.follow);
    const isPast = !view.isAtEnd || now.phase === "over" || view.store.isDead;
    this.running.textContent = view.isRunning ? "Pause" : isPast ? "Replay" : "Run";
    this.running.setAttribute("aria-disabled", Boolean(view.asked));
    this.canStop = now.phase !== "over" && view.asked !== "over" && !view.store.isDead;
    this.stopping.setAttribute("aria-disabled", !this.canStop);
    this.forking.disabled = this.ablating.disabled = Boolean(view.store.offline || view.store.isDead);
    if (view.store.isDead && !view.store.offline) this.forking.title = this.ablating.title = NO_KERNEL;
    this.drawing.setAttribute("aria-pressed", Boolean(view.figure));
    const waits = view.asked ? "asked; waiting for the kernel" : "";
    for (const control of [this.running, this.stopping]) control.title = waits;
    this.slider.max = view.length;
    this.slider.value = view.head.at;
    const text = this.describe();
    this.slider.setAttribute("aria-valuetext", text);
    if (this.description.textContent !== text) this.description.textContent = text;
    const problems = [now.error, now.notice, view.problem, view.isAtEnd ? state.detail : ""];
    const errors = [...new Set(problems.filter(Boolean))];
    const shown = JSON.stringify([now.reading, errors, waits]);
    if (shown !== this.shownNotes)
      this.notes.replaceChildren(
        ...(waits ? [make("div", {}, waits)] : []),
        ...this.progress(now.reading),
        ...errors.map((text) => make("div", { class: "tk-error", role: "alert" }, text)),
      );
    this.shownNotes = shown;
    this.draw(recording, view.head.at);
  }

  phase({ phase, reading, asks }, { status }) {
    const { view } = this;
    if (view.head.playing) return badge("replaying", status);
    if (!view.isAtEnd) return badge("rewound", status);
    if (phase === "over") return badge(status);
    if (view.store.isDead) return badge("no kernel", status);
    if (asks.length && phase === "running") return badge("your turn", status);
    if (phase === "running") return badge(reading ? "reading" : status, status);
    return badge(phase);
  }

  // The moment that is shown, in a sentence: the fork's, or behind its end the original's.
  describe() {
    const { view } = this;
    const { at } = view.head;
    const total = number(view.length);
    if (!at) return `The beginning (${total} tokens and events follow)`;
    const side = view.shown.findLastIndex((track) => at <= view.store.tracks[track].recording.length);
    const place = at >= view.length ? view.shown.length - 1 : side;
    const { frames } = view.track(place).recording;
    let last = view.at(place) - 1;
    while (frames[last]?.token === "") last--; // it has changed nothing: what did is what happened
    const frame = frames[last];
    if (!frame) return `${number(at)} of ${total}`;
    const whose = place < view.shown.length - 1 ? "In the original: " : "";
    const what =
      frame.description ??
      `Thread ${frame.thread} writes ${JSON.stringify(frame.token)}.` +
        (frame.logprobs ? ` ${describeProbs(frame.logprobs)}` : "");
    return `${number(at)} of ${total}: ${whose}${what}`;
  }

  progress(reading) {
    if (!reading) return [];
    const { thread, done, total } = reading;
    const what = thread === null ? "few-shot prompt" : `context of thread ${thread}`;
    const text = `${what}: ${number(done)} of ${number(total)} tokens`;
    const bar = make("progress", { max: Math.max(total, 1), value: done });
    return [make("label", { class: "tk-progress" }, bar, text)];
  }

  // How deep in the tree each moment is: the shape of the whole episode above the timeline, with the
  // moments of the open thread; of a fork and its original one above the other.
  draw(recording, at) {
    this.latest = [recording, at];
    const { view } = this;
    const width = Math.max(this.picture.clientWidth, 1);
    const size = [width, view.selected, ...view.open, ...view.shown.map((n) => view.store.tracks[n].recording.length)].join();
    if (size === this.drawn) return;
    this.drawn = size;
    this.picture.width = width;
    const pen = this.picture.getContext("2d");
    pen.clearRect(0, 0, width, this.picture.height);
    const height = this.picture.height / view.shown.length;
    view.shown.forEach((track, side) => {
      const { recording } = view.store.tracks[track];
      const { threads } = recording.at(recording.length);
      recording.at(view.at(side));
      const deepest = Object.values(threads).reduce((most, { depth }) => Math.max(most, depth), 1);
      for (let x = 0; x < width; x++) {
        const frame = recording.frames[Math.floor((x / width) * view.length)];
        if (!frame) break;
        const depth = threads[frame.thread]?.depth ?? 0;
        const isOpen = String(frame.thread) === view.open[side];
        pen.fillStyle = isOpen ? OPEN : REST;
        pen.globalAlpha = isOpen || frame.kind === "spawned" ? 1 : 0.6;
        const thick = 4 - view.shown.length;
        pen.fillRect(x, side * height + (depth / deepest) * (height - thick), 1, thick);
      }
    });
  }

  // The keyboard reads what is open, and goes on in the player when it is closed.
  toggleKeys(isHidden = !this.keys.hidden) {
    const had = this.keys.contains(document.activeElement);
    this.keys.hidden = isHidden;
    this.keys.replaceChildren(...(isHidden ? [] : help()));
    this.asking.setAttribute("aria-expanded", !isHidden);
    if (!isHidden) this.keys.focus({ preventScroll: true });
    else if (had) this.view.element.focus({ preventScroll: true });
  }
}
