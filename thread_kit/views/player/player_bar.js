// The bar of the player: what is going on, the buttons, and the timeline.

const SPEEDS = { "5 a second": 5, "20 a second": 20, "100 a second": 100, "as it comes": Infinity };

const KEYS = [
  ["space", "run, pause"],
  ["t, e, d, s", "a step: token, event, thread, spawn; with Shift back"],
  ["0, 9", "the first moment, the last"],
  ["+, −", "faster, slower"],
  ["f", "fork at this moment"],
  ["o", "open the thread that is at work"],
  ["↑ ↓ ← →, Enter", "in the tree: go, fold, open"],
  ["?", "these keys"],
];

class Bar {
  constructor(view) {
    this.view = view;
    this.status = make("span", { role: "status" });
    this.sums = make("span", { class: "tk-totals" });
    this.notes = make("div", { class: "tk-notes" });
    this.description = make("div", { class: "tk-description", role: "status", "aria-live": "polite" });
    this.running = button("Run", () => view.run(), { class: "tk-main" });
    this.stopping = button("Stop", () => view.stop());
    this.following = button("Follow", () => view.toggleFollow(), {
      title: "Always open the thread that is at work (o)",
    });
    this.forking = button("Fork here", () => view.forking.askHere(), { title: "f" });
    this.keys = make("div", { class: "tk-keys" }, this.table());
    this.keys.hidden = true;
    this.asking = button("Keys", () => this.toggleKeys(), { title: "?", "aria-expanded": false });
    this.speed = make(
      "select",
      { "aria-label": "speed", onchange: () => view.setSpeed(SPEEDS[this.speed.value]) },
      ...Object.keys(SPEEDS).map((name) => make("option", { value: name }, name)),
    );
    this.speed.value = "as it comes";
    this.steps = make("span", { class: "tk-steps", role: "group", "aria-label": "step" });
    const units = { token: "t", event: "e", thread: "d", spawn: "s" };
    for (const [unit, key] of Object.entries(units))
      this.steps.append(
        make(
          "span",
          { class: "tk-step" },
          button("‹", () => view.step(unit, true), {
            "aria-label": `back by ${unit}`,
            title: `back by ${unit} (Shift+${key})`,
          }),
          button(`${unit} ›`, () => view.step(unit), {
            "aria-label": `step by ${unit}`,
            title: `step by ${unit} (${key})`,
          }),
        ),
      );
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
    const line = make("div", { class: "tk-timeline" }, this.picture, this.slider);
    const buttons = make("span", { class: "tk-buttons" }, this.running, this.stopping);
    const more = make("span", { class: "tk-buttons" }, this.following, this.forking, this.asking);
    this.element = make(
      "div",
      { class: "tk-bar" },
      ...[this.status, this.sums, buttons, this.steps],
      ...[make("label", {}, "speed ", this.speed), more, line, this.description, this.keys, this.notes],
    );
  }

  // Built once and then only filled: a button that is replaced loses its click.
  show() {
    const { view } = this;
    const track = view.track();
    const { now, recording } = track;
    const [state] = view.states.slice(-1);
    const phase = this.phase(now, state);
    if (this.status.textContent !== phase.textContent) this.status.replaceChildren(phase);
    this.sums.textContent = state.totals;
    this.following.setAttribute("aria-pressed", view.follow);
    this.running.textContent = view.isRunning ? "Pause" : "Run";
    this.running.disabled = Boolean(view.asked);
    this.stopping.disabled = now.phase === "over" || view.asked === "over";
    this.forking.disabled = Boolean(view.store.offline);
    const waits = view.asked ? "asked; the kernel answers when no cell is running" : "";
    for (const control of [this.running, this.stopping]) control.title = waits;
    const { at } = view.head;
    this.slider.max = recording.length;
    this.slider.value = at;
    const text = this.describe(recording, at);
    this.slider.setAttribute("aria-valuetext", text);
    if (this.description.textContent !== text) this.description.textContent = text;
    const problems = [now.error, now.notice, view.problem, at === recording.length ? state.detail : ""];
    const errors = problems.filter(Boolean);
    const asks = view.store.offline || !this.view.isAtEnd ? [] : now.asks;
    const shown = JSON.stringify([now.reading, errors, waits, asks]);
    if (shown !== this.shownNotes)
      this.notes.replaceChildren(
        ...(waits ? [make("div", {}, waits)] : []),
        ...this.progress(now.reading),
        ...asks.slice(0, 1).map((thread) => this.asks(thread, recording.about.marks)),
        ...errors.map((text) => make("div", { class: "tk-error", role: "alert" }, text)),
      );
    this.shownNotes = shown;
    this.draw(recording, at);
  }

  phase({ phase, reading }, { status }) {
    if (this.view.head.at < this.view.track().recording.length) return badge("rewound", status);
    if (phase === "over") return badge(status);
    if (phase === "running") return badge(reading ? "reading" : status, status);
    return badge(phase);
  }

  describe(recording, at) {
    if (!at) return `The beginning (${number(recording.length)} tokens and events follow)`;
    const frame = recording.frames[at - 1];
    const what =
      frame.description ??
      `Thread ${frame.thread} writes ${JSON.stringify(frame.token)}.` +
        (frame.logprobs ? ` ${describeProbs(frame.logprobs)}` : "");
    return `${number(at)} of ${number(recording.length)}: ${what}`;
  }

  progress(reading) {
    if (!reading) return [];
    const { thread, done, total } = reading;
    const what = thread === null ? "few-shot prompt" : `context of thread ${thread}`;
    const text = `${what}: ${number(done)} of ${number(total)} tokens`;
    const bar = make("progress", { max: Math.max(total, 1), value: done });
    return [make("label", { class: "tk-progress" }, bar, text)];
  }

  // A call that a person may write.
  asks(thread, marks) {
    const { view } = this;
    const area = make("textarea", { rows: "3", spellcheck: "false", "aria-label": `write as thread ${thread}` });
    const write = () => view.send({ do: "write", thread, text: area.value });
    const pass = (always) => view.send({ do: "pass", thread, always });
    return make(
      "div",
      { class: "tk-ask" },
      make("b", {}, `You are the model: what does thread ${thread} write next?`),
      make("div", {}, `Lines of Python run. ${marks.listen} asks for a child, or for an action behind “>”; ${marks.end} ends the thread, and its last print(...) is what its parent gets.`),
      area,
      make(
        "span",
        { class: "tk-buttons" },
        button("Write", write, { class: "tk-main" }),
        button("Let the model write this", () => pass(false)),
        button("… and the rest of this thread", () => pass(true)),
      ),
    );
  }

  // How deep in the tree each moment is: the shape of the whole episode above the timeline.
  draw(recording, at) {
    this.latest = [recording, at];
    const width = Math.max(this.picture.clientWidth, 1);
    const size = `${width} ${recording.length}`;
    if (size !== this.drawn) {
      this.drawn = size;
      this.picture.width = width;
      const { height } = this.picture;
      const { threads } = recording.at(recording.length);
      recording.at(at);
      const pen = this.picture.getContext("2d");
      pen.clearRect(0, 0, width, height);
      pen.fillStyle = "#808080"; // a canvas hears of no change of theme: seen on both
      const deepest = Object.values(threads).reduce((most, { depth }) => Math.max(most, depth), 1);
      for (let x = 0; x < width; x++) {
        const { thread, kind } = recording.frames[Math.floor((x / width) * recording.length)] ?? {};
        const depth = threads[thread]?.depth ?? 0;
        pen.globalAlpha = kind === "spawned" ? 1 : 0.6;
        const top = (depth / deepest) * (height - 3);
        pen.fillRect(x, top, 1, 3);
      }
    }
  }

  table() {
    const row = ([keys, what]) =>
      make("tr", {}, make("td", {}, make("kbd", {}, keys)), make("td", {}, what));
    return make("table", {}, make("tbody", {}, ...KEYS.map(row)));
  }

  toggleKeys() {
    this.keys.hidden = !this.keys.hidden;
    this.asking.setAttribute("aria-expanded", !this.keys.hidden);
  }
}
