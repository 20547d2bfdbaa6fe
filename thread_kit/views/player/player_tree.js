// The tree of threads: a row a thread, in the order of a walk down the tree. Where two episodes are
// compared, a row is a pair of threads: those that were spawned for the same thing.

// The rows for the states of one or two episodes: {key, ids, depth, up}; an id is null where there
// is no such thread.
export function rowsOf(states) {
  const rows = [];
  const waiting = [{ ids: states.map((state) => (state.threads[0] ? "0" : null)), depth: 0, up: null }];
  while (waiting.length) {
    const row = waiting.pop();
    if (row.ids.every((id) => id === null)) continue;
    row.key = row.ids.join("|");
    rows.push(row);
    const below = row.ids.map((id, side) => {
      if (id === null) return [];
      const { threads } = states[side];
      return childrenOf(threads[id]).map((child) => ({ id: child, title: threads[child].title }));
    });
    for (const ids of paired(...below).reverse())
      waiting.push({ ids, depth: row.depth + 1, up: row.key });
  }
  return rows;
}

// Children side by side: the longest common subsequence of what they were spawned for, and between
// two of those, in order, children that were asked otherwise.
function paired(left, right) {
  if (!right) return left.map(({ id }) => [id]);
  const long = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      long[i][j] =
        left[i].title === right[j].title
          ? long[i + 1][j + 1] + 1
          : Math.max(long[i + 1][j], long[i][j + 1]);
  const pairs = [];
  let others = [[], []];
  const flush = () => {
    const [a, b] = others;
    for (let k = 0; k < Math.max(a.length, b.length); k++) pairs.push([a[k] ?? null, b[k] ?? null]);
    others = [[], []];
  };
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i].title === right[j].title) {
      flush();
      pairs.push([left[i++].id, right[j++].id]);
    } else if (j >= right.length || (i < left.length && long[i + 1][j] >= long[i][j + 1]))
      others[0].push(left[i++].id);
    else others[1].push(right[j++].id);
  }
  flush();
  return pairs;
}

// What differs between two threads that are compared; "" if nothing does. isDone: for each side,
// whether what is shown of it is all that there will be; else it may only be not so far yet.
export function difference(original, fork, isDone = [true, true]) {
  if (!fork) return isDone[1] ? "not in the fork" : "not yet in the fork";
  if (!original) return isDone[0] ? "only in the fork" : "not yet in the original";
  const sides = [original, fork];
  const isOpen = sides.map(({ status }, side) => !isDone[side] && LIVE_STATUSES.has(status));
  const [left, right] = sides.map(
    ({ sequence, writing }) => sequence.map((item) => item.text ?? "").join("") + (writing ?? ""),
  );
  if (original.context.text !== fork.context.text) return "asked otherwise";
  if (left !== right) {
    const isBehind = (isOpen[0] && right.startsWith(left)) || (isOpen[1] && left.startsWith(right));
    return isBehind ? "not so far yet" : "went otherwise";
  }
  if (original.status !== fork.status) return isOpen.some(Boolean) ? "not so far yet" : "ended otherwise";
  return "";
}

const LIVE_STATUSES = new Set(["generating", "listening", "waiting", "acting"]);
const INDENT = 14; // pixels a level
const COLUMN = 0.43; // of the width, for each of two that are compared
const TITLE = 250; // pixels that a row keeps for what it says, however deep it stands

class Tree {
  constructor(view) {
    this.view = view;
    this.folded = new Set();
    this.elements = new Map(); // by key, with the threads that they show
    this.rows = [];
    this.at = null; // the row that the keyboard is at
    this.levels = 5; // that are indented; from there on a row says its depth instead
    this.heads = make("div", { class: "tk-heads" });
    this.list = make("div", { role: "tree", "aria-label": "threads" });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.element = make("div", { class: "tk-tree" }, this.heads, this.list);
    new ResizeObserver(() => this.measure()).observe(this.element);
  }

  // As many levels as there is room for.
  measure() {
    const width = this.element.clientWidth;
    if (!width) return;
    const column = this.view.shown.length > 1 ? width * COLUMN : width;
    const levels = Math.max(Math.floor((column - TITLE) / INDENT), 2);
    if (levels === this.levels) return;
    this.levels = levels;
    for (const known of this.elements.values()) known.threads = [];
    for (const row of this.rows) this.fill(row, this.view.states);
  }

  // Above the columns of a comparison: which episode each is, and at which of its moments.
  showHeads(states) {
    const isCompared = states.length > 1;
    this.heads.hidden = !isCompared;
    if (!isCompared) return;
    const { view } = this;
    const heads = states.map((state, side) => {
      const { recording, now } = view.track(side);
      const [at, length] = [view.at(side), recording.length].map(number);
      const grows = now.phase === "over" ? "" : " so far";
      const { parent } = view.track(side);
      const name = parent === null ? "Original" : `Fork ${view.shown[side]}`;
      return make("span", { class: "tk-cell" }, make("b", {}, name), badge(state.status), `${at} of ${length}${grows}`);
    });
    const [before, after] = view.shown.map((number) => view.store.tracks[number].recording.about);
    const changes = changesOf(before, after);
    const sum = make("div", { class: "tk-sums" }, changes.length ? make("b", {}, `${changes.join(", ")}: `) : "", sums(states, [before, after].every(({ fork }) => !fork?.event)));
    this.heads.replaceChildren(make("span", {}), ...heads, make("span", { class: "tk-difference" }, "≠ what differs"), sum);
  }

  show(states) {
    this.showHeads(states);
    const counts = states.map((state) => Object.keys(state.threads).length).join();
    const shape = `${counts} ${this.view.shown.join()}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.rows = rowsOf(states);
      this.arrange();
    }
    for (const row of this.rows) this.fill(row, states);
    this.select();
  }

  arrange() {
    const keys = new Set(this.rows.map(({ key }) => key));
    for (const [key, { element }] of this.elements) {
      if (keys.has(key)) continue;
      element.remove();
      this.elements.delete(key);
    }
    if (!keys.has(this.at)) this.at = this.rows[0]?.key ?? null;
    const siblings = new Map();
    for (const row of this.rows) {
      if (!siblings.has(row.up)) siblings.set(row.up, []);
      siblings.get(row.up).push(row);
    }
    this.rows.forEach((row, place) => {
      const known = this.elements.get(row.key) ?? this.add(row);
      known.row = row;
      const { element } = known;
      element.setAttribute("aria-level", row.depth + 1);
      element.setAttribute("tabindex", row.key === this.at ? "0" : "-1");
      const here = this.list.children[place];
      if (here !== element) this.list.insertBefore(element, here ?? null);
    });
    for (const list of siblings.values())
      list.forEach((row, place) => {
        const { element } = this.elements.get(row.key);
        element.setAttribute("aria-posinset", place + 1);
        element.setAttribute("aria-setsize", list.length);
      });
    this.parents = new Set(this.rows.map(({ up }) => up));
    this.hide();
  }

  add(row) {
    const element = make("div", {
      class: "tk-row",
      role: "treeitem",
      "data-id": row.key,
      "aria-selected": false,
      onclick: (event) => {
        this.moveTo(row.key);
        if (event.target.className === "tk-twist") this.fold(row.key, !this.folded.has(row.key));
        else this.view.pick(this.elements.get(row.key).row);
      },
      onmouseenter: () => this.view.point(row.ids.at(-1)),
      onmouseleave: () => this.view.point(null),
    });
    const known = { element, row, threads: [] };
    this.elements.set(row.key, known);
    return known;
  }

  // Only what is not what it shows already.
  fill(row, states) {
    const known = this.elements.get(row.key);
    const threads = row.ids.map((id, side) => (id === null ? null : states[side].threads[id]));
    const open = this.parents.has(row.key) ? !this.folded.has(row.key) : null;
    const isCompared = threads.length > 1;
    const differs = isCompared ? difference(...threads, threads.map((_, side) => this.view.isDone(side))) : "";
    const isSame = threads.every((thread, side) => isSameRow(thread, known.threads[side]));
    if (open === known.open && differs === known.differs && isSame) return;
    Object.assign(known, { threads, open, differs });
    const { element } = known;
    element.style.setProperty("--tk-indent", `${INDENT * Math.min(row.depth, this.levels)}px`);
    if (open === null) element.removeAttribute("aria-expanded");
    else element.setAttribute("aria-expanded", open);
    const twist = open === null ? "" : open ? "▾" : "▸";
    const cells = threads.map((thread, side) => this.cell(thread, side));
    const isWaiting = / yet/.test(differs);
    element.classList.toggle("tk-differs", Boolean(differs) && !isWaiting);
    element.classList.toggle("tk-waits", isWaiting);
    element.title = [...new Set(threads.filter(Boolean).map(({ title }) => title))].join(" | ");
    element.replaceChildren(
      make("span", { class: "tk-twist", "aria-hidden": "true" }, twist),
      ...cells,
      ...(isCompared ? [make("span", { class: "tk-difference" }, differs && `${isWaiting ? "…" : "≠"} ${differs}`)] : []),
    );
  }

  cell(thread, side) {
    if (!thread) return make("span", { class: "tk-cell tk-none" }, "—");
    const depth = thread.depth > this.levels ? `[depth ${thread.depth}] ` : "";
    return make(
      "span",
      { class: "tk-cell" },
      make("b", {}, String(thread.id)),
      statusBadge(thread),
      make("bdi", { class: "tk-title" }, depth + thread.label),
      ...this.near(thread, side),
      ...(thread.edits.length ? [make("span", { class: "tk-edited", title: "changed here" }, "✎")] : []),
      make("span", { class: "tk-cost", title: "tokens generated" }, number(thread.usage.generated)),
    );
  }

  // Places where a spawn nearly happened.
  near(thread, side) {
    const { marks } = this.view.track(side).recording.about;
    const near = thread.sequence.flatMap((item) => (isBranch(item) ? [] : nearly(item, marks)));
    if (!near.length) return [];
    const most = percent(Math.max(...near.map(([, chance]) => chance)));
    const title = `tokens at which a spawn was likely and did not come: ${near.length}, at most ${most}`;
    return [make("span", { class: "tk-near", title }, `≈${near.length}`)];
  }

  // From here; the drawings follow.
  fold(key, folded) {
    this.setFold(key, folded);
    const { row } = this.elements.get(key);
    row.ids.forEach((id, side) => {
      if (id !== null) this.view.figures[side].figures.tree.setFold(id, folded);
    });
  }

  setFold(key, folded) {
    if (folded) this.folded.add(key);
    else this.folded.delete(key);
    this.hide();
    this.fill(this.elements.get(key).row, this.view.states);
  }

  // In a drawing somebody folded a thread.
  foldThread(side, id, folded) {
    const row = this.rows.find(({ ids }) => ids[side] === id);
    if (row) this.setFold(row.key, folded);
  }

  // What differs, by the threads of a side.
  differences(side) {
    return new Map(this.rows.map(({ key, ids }) => [ids[side], this.elements.get(key).differs]));
  }

  hide() {
    const hidden = new Set(); // rows come after those that they are below
    for (const { key, up } of this.rows) {
      if (hidden.has(up) || this.folded.has(up)) hidden.add(key);
      this.elements.get(key).element.hidden = hidden.has(key);
    }
  }

  select() {
    const key = this.view.open.join("|");
    if (key === this.selected?.key && this.elements.get(key) === this.selected.known) return;
    this.selected?.known?.element.setAttribute("aria-selected", false);
    const known = this.elements.get(key);
    this.selected = { key, known };
    if (!known) return;
    known.element.setAttribute("aria-selected", true);
    if (known.element.hidden) return;
    const { offsetTop, offsetHeight } = known.element; // scrolls the tree, and never the notebook
    const { scrollTop, clientHeight } = this.element;
    const above = this.heads.offsetHeight; // they stay while the rows move
    if (offsetTop - above < scrollTop) this.element.scrollTop = offsetTop - above;
    else if (offsetTop + offsetHeight > scrollTop + clientHeight)
      this.element.scrollTop = offsetTop + offsetHeight - clientHeight;
  }

  mark(ids) {
    for (const { element, row } of this.elements.values())
      element.classList.toggle("tk-pointed", ids.includes(row.ids.at(-1)));
  }

  moveTo(key) {
    this.elements.get(this.at)?.element.setAttribute("tabindex", "-1");
    this.at = key;
    const { element } = this.elements.get(key);
    element.setAttribute("tabindex", "0");
    element.focus();
  }

  key(event) {
    if (this.at === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = this.rows.filter(({ key }) => !this.elements.get(key).element.hidden);
    const place = shown.findIndex(({ key }) => key === this.at);
    const { open, row } = this.elements.get(this.at);
    const go = (other) => other && this.moveTo(other.key);
    const pick = () => this.view.pick(row);
    const keys = {
      ArrowDown: () => go(shown[place + 1]),
      ArrowUp: () => go(shown[place - 1]),
      ArrowRight: () => (open === false ? this.fold(this.at, false) : open && go(shown[place + 1])),
      ArrowLeft: () =>
        open ? this.fold(this.at, true) : row.up !== null && go(this.elements.get(row.up).row),
      Home: () => go(shown[0]),
      End: () => go(shown.at(-1)),
      Enter: pick,
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }
}

// Is all that a row shows of a thread the same in both?
function isSameRow(before, after) {
  if (before === after) return true;
  if (!before || !after) return false;
  const shown = ["status_text", "usage", "label", "sequence", "edits"];
  return shown.every((name) => before[name] === after[name]);
}
