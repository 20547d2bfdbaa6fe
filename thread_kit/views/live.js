// The page's side of the live widget (live.py). No build step: live.py joins this file with
// live_tree.js and live_pane.js to one module. Data flows one way:
//   fold    the reducer: makes one change in the state, as deltas.py does
//   Store   the state of one widget: a snapshot first, then numbered messages of changes
//   View    one display of it: the bar, the Tree, and the Pane of the thread that is open
// All text of models and environments goes into the page as text, never as markup.

export function fold(state, [verb, path, value]) {
  const key = path.at(-1);
  const place = path.slice(0, -1).reduce((one, name) => one[name], state);
  if (verb === "set") place[key] = value;
  else if (verb === "push") place[key].push(...value);
  else if (verb === "write") place[key] += value;
}

class Store {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    this.state = { n: -1 };
    this.load();
    model.on("change:snapshot", () => this.load());
    model.on("msg:custom", (message) => this.take(message));
  }

  load() {
    const state = JSON.parse(this.model.get("snapshot"));
    if (state.n <= this.state.n) return;
    this.state = state;
    for (const view of this.views) view.reset();
  }

  take({ n, changes }) {
    if (n <= this.state.n) return;
    if (n > this.state.n + 1) return this.tell({ shown: this.state.n }); // missed one: ask for all
    this.state.n = n;
    // Threads by what changed in them: true for more than the text that is being written.
    const touched = new Map();
    for (const change of changes) {
      fold(this.state, change);
      const [verb, [top, id]] = change;
      if (top === "threads") touched.set(id, touched.get(id) || verb !== "write");
    }
    for (const view of this.views) view.update(touched);
  }

  tell(message) {
    this.model.send(message);
  }
}

class View {
  constructor(store, el) {
    this.store = store;
    this.open = "0"; // the thread in the pane
    this.follow = true; // open the thread that is at work
    this.asked = ""; // the phase that a button asked for
    this.bar = this.buildBar();
    this.tree = new Tree(this);
    this.pane = new Pane(this);
    el.classList.add("tk-live");
    el.dataset.lmSuppressShortcuts = "true"; // arrow keys are ours, not the notebook's
    el.append(this.bar, make("div", { class: "tk-body" }, this.tree.element, this.pane.element));
    this.reset();
  }

  get state() {
    return this.store.state;
  }

  reset() {
    this.tree.reset();
    this.update(new Map(Object.keys(this.state.threads).map((id) => [id, true])));
  }

  update(touched) {
    for (const [id, more] of touched) if (more) this.tree.show(id);
    const turn = this.follow && this.turn(touched);
    if (turn && turn !== this.open && this.state.threads[turn]) this.choose(turn);
    else if (touched.get(this.open)) this.pane.show();
    else if (touched.has(this.open)) this.pane.showWriting();
    this.showBar();
  }

  // The thread to follow: of several that write at the same time, the one that is open already.
  turn(touched) {
    if (this.state.phase === "over") return "0";
    if (this.state.threads[this.open]?.status === "generating") return this.open;
    return [...touched.keys()].at(-1);
  }

  choose(id) {
    this.open = id;
    this.tree.select(id);
    this.pane.show();
  }

  // What a person chose: from now on nothing else is opened.
  pick(id) {
    this.follow = false;
    this.choose(id);
    this.showBar();
  }

  // The bar is built once and then only filled: a button that is replaced loses its click.

  buildBar() {
    const button = (label, onclick) => make("button", { type: "button", onclick }, label);
    const ask = (verb, phase) => {
      this.asked = phase;
      this.store.tell({ do: verb });
      this.showBar();
    };
    this.status = make("span", { role: "status" });
    this.sums = make("span", { class: "tk-totals" });
    this.notes = make("div", { class: "tk-notes" });
    this.following = button("Follow", () => {
      this.follow = !this.follow;
      this.showBar();
    });
    this.following.title = "Always open the thread that is at work";
    this.pausing = button("Pause", () =>
      this.state.phase === "paused" ? ask("resume", "running") : ask("pause", "paused"),
    );
    this.stopping = button("Stop", () => ask("stop", "over"));
    const buttons = make("span", { class: "tk-buttons" });
    buttons.append(this.following, this.pausing, this.stopping);
    return make("div", { class: "tk-bar" }, this.status, this.sums, buttons, this.notes);
  }

  showBar() {
    const { phase, error, detail } = this.state;
    if (this.asked === phase || phase === "over") this.asked = "";
    const doing = this.doing();
    if (this.status.textContent !== doing.textContent) this.status.replaceChildren(doing);
    this.sums.textContent = this.totals();
    this.following.setAttribute("aria-pressed", this.follow);
    this.pausing.textContent = phase === "paused" ? "Resume" : "Pause";
    this.pausing.disabled = phase === "over" || Boolean(this.asked);
    this.stopping.disabled = phase === "over" || this.asked === "over";
    const waits = this.asked ? "asked; the kernel answers when no cell is running" : "";
    for (const button of [this.pausing, this.stopping]) button.title = waits;
    const problem = error || detail;
    this.notes.replaceChildren(
      ...this.progress(),
      ...(problem ? [make("div", { class: "tk-error", role: "alert" }, problem)] : []),
    );
  }

  doing() {
    const { phase, status, reading } = this.state;
    if (phase === "over") return badge(status);
    if (phase === "running") return badge(reading ? "reading" : status, status);
    return badge(phase);
  }

  totals() {
    const { reward, prompting } = this.state;
    const threads = Object.values(this.state.threads);
    const sum = (key) => threads.reduce((all, one) => all + one.usage[key], 0);
    const parts = [
      count(threads.length, "thread"),
      `depth ${Math.max(0, ...threads.map((one) => one.depth))}`,
      ...costs({
        calls: sum("calls"),
        generated: sum("generated"),
        evaluated: sum("evaluated"),
        reused: sum("reused"),
      }),
    ];
    if (reward !== null) parts.unshift(`reward ${reward}`);
    if (prompting.evaluated) parts.push(`few-shot evaluated ${number(prompting.evaluated)}`);
    if (prompting.reused) parts.push(`few-shot reused ${number(prompting.reused)}`);
    return parts.join(" · ");
  }

  progress() {
    const { reading } = this.state;
    if (!reading) return [];
    const { thread } = reading;
    const what = thread === null ? "few-shot prompt" : `context of thread ${thread}`;
    const text = `${what}: ${number(reading.done)} of ${number(reading.total)} tokens`;
    const bar = make("progress", { max: Math.max(reading.total, 1), value: reading.done });
    return [make("label", { class: "tk-progress" }, bar, text)];
  }
}

// Words and elements

const number = (n) => n.toLocaleString("en");
const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const costs = ({ calls, generated, evaluated, reused }) => [
  count(calls, "call"),
  `generated ${number(generated)}`,
  `evaluated ${number(evaluated)}`,
  `reused ${number(reused)}`,
];
const css = (name) => "tk-" + name.replaceAll(" ", "-");
const badge = (text, status = text) => make("span", { class: `tk-badge ${css(status)}` }, text);
const doing = (one) =>
  badge(one.waits_for === null ? one.status : `${one.status} for ${one.waits_for}`, one.status);
const nameOf = (one) => (one.future ? `{${one.future}} ` : "") + one.title;
const isBranch = (item) => "branch" in item;

// An element: its attributes (on... are listeners), its children (texts or elements).
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export default () => {
  let store;
  return {
    initialize({ model }) {
      store = new Store(model);
    },
    render({ el }) {
      const view = new View(store, el);
      store.views.add(view);
      store.tell({ shown: store.state.n });
      return () => store.views.delete(view);
    },
  };
};
