// The tree as a tree, after Figure 1 of THREAD paper, with one node for a thread's token sequence:
// its area by the tokens that it generated, its colour by its status; to each child an edge for
// phi, and one back for psi.

const SLOT = 38; // pixels, at the scale 1
const LEVEL = 60;
const [SMALL, LARGE] = [8, 17]; // radii
const PADDING = 14;
const BETTER = 1.4; // times larger: then a tree is turned
let drawings = 0;

// From the edge of a node to that of one below, beside the line between their centres; or back.
function curve(from, to, aside, isAcross, isBack = false) {
  const ends = [
    [from.along + aside, from.deep + from.r + (isBack ? 2 : 0)],
    [to.along + aside, to.deep - to.r - (isBack ? 0 : 2)],
  ];
  const middle = (ends[0][1] + ends[1][1]) / 2;
  const places = [ends[0], [ends[0][0], middle], [ends[1][0], middle], ends[1]];
  const [start, ...rest] = (isBack ? places.reverse() : places).map(([along, deep]) => (isAcross ? [deep, along] : [along, deep]));
  return `M${start}C${rest.join(" ")}`;
}

// What a node is kept under: its thread, or "+" and the thread that more are below.
const keyOf = ({ id, up }) => id ?? `+${up.id}`;

class Drawing {
  constructor(view, side, figure) {
    Object.assign(this, { view, side, figure });
    this.folds = new Map();
    this.all = false; // nothing is folded by itself
    this.isAcross = false; // from left to right, and not from top to bottom
    this.turned = null; // what a person said about that
    this.items = new Map(); // by their keys
    this.at = "0"; // where the keyboard is
    this.most = 1;
    this.links = draw("g", { "aria-hidden": "true" });
    this.marks = draw("g", { role: "none" });
    this.arrows = ["phi", "psi"].map((name) => [name, `tk-${name}-${drawings++}`]);
    const heads = this.arrows.map(([name, id]) =>
      draw(
        "marker",
        { id, class: `tk-${name}-head`, viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 5, markerHeight: 5, orient: "auto" },
        draw("path", { d: "M0 0L6 3L0 6Z" }),
      ),
    );
    this.svg = draw(
      "svg",
      { role: "tree", "aria-label": "drawing of the tree", onkeydown: (event) => this.key(event) },
      draw("defs", {}, ...heads),
      this.links,
      this.marks,
    );
    this.stage = new Stage(this.svg);
    this.stage.onresize = () => {
      this.shape = null; // there may be more room the other way
      if (view.figure === "tree" && side < (view.states?.length ?? 0)) this.show();
    };
    this.element = this.stage.element;
    this.tools = make(
      "span",
      { class: "tk-buttons" },
      button("−", () => this.zoomBy(1 / 1.3), { "aria-label": "smaller", title: "Shift+z, or Ctrl and the wheel" }),
      button("+", () => this.zoomBy(1.3), { "aria-label": "larger", title: "z, or Ctrl and the wheel" }),
      button("Fit", () => this.fit(), { title: "r" }),
      button("Turn", () => this.turn(), { title: "From left to right, or from top to bottom (v)" }),
      (this.unfolding = button("All threads", () => this.showAll(), {
        title: `Draw all, and not the first ${MOST} and the way to the open one (m)`,
      })),
    );
  }

  get threads() {
    return this.view.states[this.side]?.threads ?? {};
  }

  show() {
    const { view, side } = this;
    const { threads } = this;
    const open = view.open[side];
    if (view.shown[side] !== this.track) this.folds.clear(); // they were those of another episode
    this.track = view.shown[side];
    const count = Object.keys(threads).length;
    this.unfolding.setAttribute("aria-pressed", this.all);
    const path = this.path(open);
    const whole = count <= MOST || this.all;
    const shape = [view.shown[side], count, this.all, whole ? "" : path.join()].join(" ");
    if (shape !== this.shape) {
      this.shape = shape;
      const most = this.all ? Infinity : MOST;
      this.arrange(layoutDrawing(threads, { path, folds: this.folds, most }));
    }
    // The next power of two, so that not every token changes every node.
    const most = Object.values(threads).reduce((most, { usage }) => Math.max(most, usage.generated), 1);
    this.most = 2 ** Math.ceil(Math.log2(most));
    const frame = view.track(side)?.recording.frames[view.at(side) - 1];
    const isOver = view.isDone(side);
    this.working = isOver ? null : String(frame?.thread ?? "");
    const pairs = view.states.length > 1 ? view.tree.differences(side) : new Map();
    for (const item of this.items.values()) if (item.id !== null) this.fill(item, threads[item.id], pairs.get(item.id));
    for (const item of this.items.values()) this.connect(item);
    if (open !== this.open) this.reveal(open);
    this.open = open;
  }

  // A thread and all that it is below.
  path(id) {
    const path = [];
    for (let at = this.threads[id]; at; at = this.threads[at.parent]) path.push(String(at.id));
    return path;
  }

  // The way in which it is larger, if by much; while an episode grows it turns once at most.
  turnTo(width, levels) {
    const sizes = [false, true].map((isAcross) => {
      const size = [width * SLOT + 2 * PADDING, levels * LEVEL + PADDING - 10];
      return isAcross ? size.reverse() : size;
    });
    const [fits, other] = [this.isAcross, !this.isAcross].map((way) => this.stage.fits(sizes[Number(way)]));
    if (this.turned !== null) this.isAcross = this.turned;
    else if (fits > 0 && other > BETTER * fits) this.isAcross = !this.isAcross;
    this.stage.size = sizes[Number(this.isAcross)];
  }

  arrange({ nodes, width, levels }) {
    this.turnTo(width, levels);
    const old = this.items;
    this.items = new Map(nodes.map((node) => [keyOf(node), old.get(keyOf(node)) ?? this.add(keyOf(node), node)]));
    for (const [key, { element, link }] of old) {
      if (this.items.has(key)) continue;
      element.remove();
      link?.remove();
    }
    nodes.forEach((node, place) => {
      const item = this.items.get(keyOf(node));
      const [along, deep] = [node.x * SLOT + PADDING, (node.level + 0.5) * LEVEL];
      const [px, py] = this.isAcross ? [deep, along] : [along, deep];
      if (item.px !== px || item.py !== py) item.element.setAttribute("transform", `translate(${px} ${py})`);
      Object.assign(item, { node, along, deep, px, py, up: node.up && (node.up.id ?? null) });
      if (node.hidden) this.fillMore(item);
      // In the order in which one walks; what is moved would lose the focus.
      const here = this.marks.children[place];
      if (here !== item.element) this.marks.insertBefore(item.element, here ?? null);
    });
    if (!this.items.has(this.at)) this.at = "0";
    for (const [key, { element }] of this.items) element.setAttribute("tabindex", key === this.at ? "0" : "-1");
    this.stage.scaleTo();
  }

  add(key, { id, up, level }) {
    const element = draw("g", {
      role: "treeitem",
      class: "tk-node",
      "data-node": key,
      "aria-level": level + 1,
      onclick: (event) => this.click(key, event),
      ondblclick: () => id !== null && this.view.seekThread(this.side, id),
      onmouseenter: () => this.hover(key, true),
      onmouseleave: () => this.hover(key, false),
      onfocus: () => this.describe(key),
      onblur: () => this.describe(null),
    });
    const item = { key, id, element, r: SMALL };
    if (up !== null) {
      item.paths = {};
      for (const name of ["phi", "psi", "hit"]) item.paths[name] = draw("path", { class: `tk-${name}` });
      for (const [name, arrow] of this.arrows) item.paths[name].setAttribute("marker-end", `url(#${arrow})`);
      item.link = draw(
        "g",
        {
          class: "tk-link",
          "data-link": key,
          onmouseenter: () => this.hover(key, true, true),
          onmouseleave: () => this.hover(key, false),
          onclick: () => id !== null && this.view.openEdge(this.side, this.items.get(key).up, id),
        },
        ...Object.values(item.paths),
      );
      this.links.append(item.link);
    }
    return item;
  }

  // A thread's node; only what is not what it shows already.
  fill(item, thread, differs = "") {
    const isOpen = this.view.open[this.side] === item.id;
    const isWorking = this.working === item.id;
    const { node } = item;
    const isExpanded = !node.below.every(({ hidden }) => hidden);
    const { status_text, usage, actions, edits } = thread;
    const numbers = [usage.generated, actions.length, edits.length, this.most, node.below.length];
    const shown = [status_text, ...numbers, isExpanded, isOpen, isWorking, differs].join("|");
    if (item.known === shown) return;
    item.known = shown;
    item.r = SMALL + (LARGE - SMALL) * Math.sqrt(thread.usage.generated / this.most);
    const { r, element } = item;
    const hasChildren = node.below.length > 0;
    const isPointed = element.classList.contains("tk-pointed");
    element.setAttribute("class", `tk-node ${css(thread.status)}${isPointed ? " tk-pointed" : ""}`);
    element.classList.toggle("tk-working", isWorking);
    element.classList.toggle("tk-otherwise", Boolean(differs) && !/ yet/.test(differs));
    element.setAttribute("aria-selected", isOpen);
    if (hasChildren) element.setAttribute("aria-expanded", isExpanded);
    else element.removeAttribute("aria-expanded");
    // What is to be seen comes first: whoever speaks to the page says that.
    const acts = actions.length ? `, ${pluralize(actions.length, "action")}` : "";
    const tokens = `${number(thread.usage.generated)} tokens generated`;
    element.setAttribute("aria-label", `thread ${thread.id}${acts}, ${thread.status_text}, ${tokens}: ${thread.label}`);
    const body = thread.cut_short
      ? draw("rect", { class: "tk-shape", x: -r, y: -r, width: 2 * r, height: 2 * r })
      : draw("circle", { class: "tk-shape", r });
    const notes = [thread.actions.length ? `>${thread.actions.length}` : "", thread.edits.length ? "✎" : ""].join("");
    element.replaceChildren(
      draw("circle", { class: "tk-ring", r: r + 4 }),
      body,
      draw("text", { y: 3.5 }, String(thread.id)),
      ...(notes ? [draw("text", { class: "tk-note", x: r * 0.75 + 4, y: -r * 0.75 }, notes)] : []),
      ...(hasChildren ? [this.handle(item)] : []),
    );
  }

  // Folds what is below; a person with a mouse finds it under the node.
  handle({ id, r }) {
    const onclick = (event) => {
      event.stopPropagation();
      this.fold(id, true);
    };
    return draw(
      "g",
      { class: "tk-handle", transform: `translate(${r + 3} ${r - 2})`, onclick },
      draw("circle", { r: 6 }),
      draw("text", { y: 3 }, "−"),
    );
  }

  fillMore({ element, node }) {
    const text = `+${number(node.hidden)}`;
    element.setAttribute("class", "tk-node tk-more");
    element.setAttribute("aria-label", `${number(node.hidden)} more threads below thread ${node.up.id}: unfold`);
    const wide = Math.max(8 * text.length, 18);
    element.replaceChildren(
      draw("rect", { class: "tk-shape", x: -wide / 2, y: -8, width: wide, height: 16, rx: 8 }),
      draw("text", { y: 3.5 }, text),
    );
  }

  connect(item) {
    if (!item.link) return;
    const up = this.items.get(item.up);
    const thread = this.threads[item.id];
    const back = thread && answerOf(this.threads[item.up], thread.id);
    const { isAcross } = this;
    const shown = [up.px, up.py, up.r, item.px, item.py, item.r, isAcross, back?.provenance].join();
    if (shown === item.connected) return;
    item.connected = shown;
    const { phi, psi, hit } = item.paths;
    phi.setAttribute("d", curve(up, item, back ? -3 : 0, isAcross));
    psi.setAttribute("d", back ? curve(up, item, 3, isAcross, true) : "");
    hit.setAttribute("d", curve(up, item, 0, isAcross));
    psi.classList.toggle("tk-waits-for", back?.provenance === "reference");
    item.link.classList.toggle("tk-to-more", !thread);
  }

  // What was chosen here or elsewhere

  click(key, event) {
    const { id, up } = this.items.get(key);
    this.moveTo(key);
    if (id === null) this.fold(up, false);
    else if (event.detail < 2) this.view.pickThread(this.side, id);
  }

  fold(id, folded) {
    this.setFold(id, folded);
    this.view.tree.foldThread(this.side, id, folded);
    this.moveTo(id);
  }

  // The outline was folded, or this was.
  setFold(id, folded) {
    this.folds.set(id, folded);
    this.shape = null;
    if (this.view.figure === "tree") this.show();
  }

  showAll() {
    this.all = !this.all;
    this.folds.clear();
    this.stage.farthest = this.all ? FARTHEST : LEGIBLE;
    this.shape = null;
    this.show();
    this.fit();
  }

  turn() {
    this.turned = !this.isAcross;
    this.shape = null;
    this.show();
    this.fit();
  }

  fit() {
    this.stage.fit();
    this.reveal(this.view.open[this.side]);
  }

  // The open thread stays where it is, if it is in view.
  zoomBy(factor) {
    const item = this.items.get(this.view.open[this.side]);
    this.stage.zoomBy(factor, ...(item ? this.stage.placeOf(item.px, item.py) : []));
  }

  reveal(key) {
    const item = this.items.get(key);
    if (item) this.stage.reveal(item.px, item.py);
  }

  mark(id) {
    for (const item of this.items.values()) item.element.classList.toggle("tk-pointed", item.id !== null && item.id === id);
  }

  hover(key, isOver, isLink = false) {
    const { id } = this.items.get(key) ?? { id: null };
    if (id !== null) this.view.point(isOver ? this.view.partners(id, this.side).at(-1) : null);
    this.describe(isOver ? key : this.svg.contains(document.activeElement) ? this.at : null, isLink);
  }

  describe(key, isLink = false) {
    const item = this.items.get(key);
    const thread = item && this.threads[item.id];
    if (!thread) return this.figure.caption(false);
    const parent = this.threads[thread.parent];
    const sum = generatedBy(thread.id, this.threads);
    const work = `${number(thread.usage.generated)} tokens generated, ${number(sum)} with all below`;
    const done = thread.actions.length;
    const actions = done ? ` · ${pluralize(done, "action")}` : "";
    this.figure.caption(
      this.stage.isBelowMiddle(item.py),
      ...(isLink ? [] : [make("div", {}, make("b", {}, `Thread ${thread.id} `), statusBadge(thread), ` ${work}${actions}`)]),
      ...(parent ? passed(thread, parent) : [make("div", {}, thread.label)]),
    );
  }

  moveTo(key) {
    if (!this.items.has(key)) return;
    this.items.get(this.at)?.element.setAttribute("tabindex", "-1");
    this.at = key;
    const { element } = this.items.get(key);
    element.setAttribute("tabindex", "0");
    element.focus({ preventScroll: true });
    this.reveal(key);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = this.items.get(this.at);
    if (!item) return;
    const { node } = item;
    const level = [...this.items.values()].filter((other) => other.deep === item.deep);
    const place = level.indexOf(item);
    const go = (key) => key && this.moveTo(key);
    const ways = [level[place - 1]?.key, level[place + 1]?.key, node.up && keyOf(node.up), node.below[0] && keyOf(node.below[0])];
    const [left, right, up, down] = this.isAcross ? [2, 3, 0, 1] : [0, 1, 2, 3];
    const keys = {
      ArrowLeft: () => go(ways[left]),
      ArrowRight: () => go(ways[right]),
      ArrowUp: () => go(ways[up]),
      ArrowDown: () => go(ways[down]),
      Home: () => go("0"),
      Enter: () => this.click(item.key, event),
      c: () => (item.id === null ? this.fold(item.up, false) : node.below.length && this.fold(item.id, !node.below.every(({ hidden }) => hidden))),
      j: () => item.id !== null && this.view.seekThread(this.side, item.id),
      v: () => this.turn(),
      z: () => this.zoomBy(event.shiftKey ? 1 / 1.3 : 1.3),
      r: () => this.fit(),
      m: () => this.showAll(),
    };
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(keys, name)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[name]();
  }
}
