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
    this.says = make("div", { class: "tk-says", role: "status", "aria-live": "polite" });
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
      ...[make("label", {}, "speed ", this.speed), more, line, this.says, this.keys, this.notes],
    );
  }

  // Built once and then only filled: a button that is replaced loses its click.
  show() {
    const { view } = this;
    const track = view.track();
    const { now, film } = track;
    const [state] = view.states.slice(-1);
    const doing = this.doing(now, state);
    if (this.status.textContent !== doing.textContent) this.status.replaceChildren(doing);
    this.sums.textContent = this.totals(state);
    this.following.setAttribute("aria-pressed", view.follow);
    this.running.textContent = view.isRunning ? "Pause" : "Run";
    this.running.disabled = Boolean(view.asked);
    this.stopping.disabled = now.phase === "over" || view.asked === "over";
    this.forking.disabled = Boolean(view.store.offline);
    const waits = view.asked ? "asked; the kernel answers when no cell is running" : "";
    for (const one of [this.running, this.stopping]) one.title = waits;
    const { at } = view.head;
    this.slider.max = film.length;
    this.slider.value = at;
    const text = this.told(film, at);
    this.slider.setAttribute("aria-valuetext", text);
    if (this.says.textContent !== text) this.says.textContent = text;
    const problems = [now.error, now.notice, view.said, at === film.length ? state.detail : ""];
    const wrong = problems.filter(Boolean);
    const asks = view.store.offline || !this.view.isAtEnd ? [] : now.asks;
    const shown = JSON.stringify([now.reading, wrong, waits, asks]);
    if (shown !== this.noted)
      this.notes.replaceChildren(
        ...(waits ? [make("div", {}, waits)] : []),
        ...this.progress(now.reading),
        ...asks.slice(0, 1).map((thread) => this.asks(thread, film.about.marks)),
        ...wrong.map((text) => make("div", { class: "tk-error", role: "alert" }, text)),
      );
    this.noted = shown;
    this.draw(film, at);
  }

  doing({ phase, reading }, { status }) {
    if (this.view.head.at < this.view.track().film.length) return badge("rewound", status);
    if (phase === "over") return badge(status);
    if (phase === "running") return badge(reading ? "reading" : status, status);
    return badge(phase);
  }

  told(film, at) {
    if (!at) return `The beginning (${number(film.length)} tokens and events follow)`;
    const frame = film.frames[at - 1];
    const what =
      frame.says ??
      `Thread ${frame.thread} writes ${JSON.stringify(frame.token)}.` +
        (frame.logprobs ? ` ${weighed(frame.logprobs)}` : "");
    return `${number(at)} of ${number(film.length)}: ${what}`;
  }

  totals(state) {
    const threads = Object.values(state.threads);
    const sums = { calls: 0, generated: 0, evaluated: 0, reused: 0 };
    let depth = 0;
    for (const one of threads) {
      for (const name in sums) sums[name] += one.usage[name];
      depth = Math.max(depth, one.depth);
    }
    const { reward, prompting } = state;
    const parts = [count(threads.length, "thread"), `depth ${depth}`, ...costs(sums)];
    if (reward !== null) parts.unshift(`reward ${reward}`);
    if (prompting.evaluated) parts.push(`few-shot evaluated ${number(prompting.evaluated)}`);
    if (prompting.reused) parts.push(`few-shot reused ${number(prompting.reused)}`);
    return parts.join(" · ");
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
    const write = () => view.tell({ do: "write", thread, text: area.value });
    const pass = (always) => view.tell({ do: "pass", thread, always });
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
  draw(film, at) {
    this.latest = [film, at];
    const width = Math.max(this.picture.clientWidth, 1);
    const drawn = `${width} ${film.length}`;
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.picture.width = width;
      const { height } = this.picture;
      const { threads } = film.at(film.length);
      film.at(at);
      const pen = this.picture.getContext("2d");
      pen.clearRect(0, 0, width, height);
      pen.fillStyle = "#808080"; // a canvas hears of no change of theme: seen on both
      const deepest = Object.values(threads).reduce((most, one) => Math.max(most, one.depth), 1);
      for (let x = 0; x < width; x++) {
        const { thread, kind } = film.frames[Math.floor((x / width) * film.length)] ?? {};
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
