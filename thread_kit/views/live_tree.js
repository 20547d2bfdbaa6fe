// The tree of the live widget: a row a thread, in the order of a walk down the tree.

class Tree {
  constructor(view) {
    this.view = view;
    this.folded = new Set();
    this.element = make("div", { class: "tk-tree", role: "tree", "aria-label": "threads" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.reset();
  }

  reset() {
    this.rows = new Map();
    this.at = null; // the row that the keyboard is at
    this.element.replaceChildren();
  }

  show(id) {
    const one = this.view.state.threads[id];
    const row = this.rows.get(id) ?? this.add(id, one);
    const isOpen = !this.folded.has(id);
    const isParent = one.sequence.some(isBranch);
    if (isParent) row.setAttribute("aria-expanded", isOpen);
    row.title = one.title;
    const twist = isParent ? (isOpen ? "▾" : "▸") : "";
    const depth = one.depth > 20 ? `[depth ${one.depth}] ` : ""; // from there on no indentation
    row.replaceChildren(
      make("span", { class: "tk-twist", "aria-hidden": "true" }, twist),
      make("b", {}, id),
      doing(one),
      make("bdi", { class: "tk-title" }, depth + nameOf(one)),
      make("span", { class: "tk-cost", title: "tokens generated" }, number(one.usage.generated)),
    );
  }

  add(id, one) {
    const row = make("div", {
      class: "tk-row",
      role: "treeitem",
      tabindex: this.at === null ? "0" : "-1",
      "data-id": id,
      "aria-level": one.depth + 1,
      "aria-selected": id === this.view.open,
      onclick: (event) => {
        this.moveTo(id);
        if (event.target.className === "tk-twist") this.fold(id, !this.folded.has(id));
        else this.view.pick(id);
      },
    });
    row.style.setProperty("--tk-level", Math.min(one.depth, 20));
    row.hidden = this.isHidden(one);
    this.at ??= id;
    this.rows.set(id, row);
    let after = this.rows.get(String(one.parent)) ?? this.element.lastChild;
    const isBelow = (other) => other && Number(other.getAttribute("aria-level")) > one.depth;
    while (isBelow(after?.nextSibling)) after = after.nextSibling;
    if (after) after.after(row);
    else this.element.append(row);
    return row;
  }

  isHidden(one) {
    for (let up = one.parent; up !== null; up = this.view.state.threads[up].parent)
      if (this.folded.has(String(up))) return true;
    return false;
  }

  fold(id, folded) {
    if (folded) this.folded.add(id);
    else this.folded.delete(id);
    this.show(id);
    for (const [other, row] of this.rows)
      row.hidden = this.isHidden(this.view.state.threads[other]);
  }

  select(id) {
    for (const [other, row] of this.rows) row.setAttribute("aria-selected", other === id);
    const row = this.rows.get(id);
    if (!row || row.hidden) return;
    const { offsetTop, offsetHeight } = row; // scrolls the tree, and never the notebook
    const { scrollTop, clientHeight } = this.element;
    if (offsetTop < scrollTop) this.element.scrollTop = offsetTop;
    else if (offsetTop + offsetHeight > scrollTop + clientHeight)
      this.element.scrollTop = offsetTop + offsetHeight - clientHeight;
  }

  moveTo(id) {
    this.rows.get(this.at).setAttribute("tabindex", "-1");
    this.at = id;
    this.rows.get(id).setAttribute("tabindex", "0");
    this.rows.get(id).focus();
  }

  key(event) {
    if (this.at === null) return;
    const shown = [...this.element.children].filter((row) => !row.hidden);
    const row = this.rows.get(this.at);
    const place = shown.indexOf(row);
    const expanded = row.getAttribute("aria-expanded");
    const parent = this.rows.get(String(this.view.state.threads[this.at].parent));
    const go = (other) => other && this.moveTo(other.dataset.id);
    const open = () => this.view.pick(this.at);
    const keys = {
      ArrowDown: () => go(shown[place + 1]),
      ArrowUp: () => go(shown[place - 1]),
      ArrowRight: () =>
        expanded === "false" ? this.fold(this.at, false) : expanded && go(shown[place + 1]),
      ArrowLeft: () => (expanded === "true" ? this.fold(this.at, true) : go(parent)),
      Home: () => go(shown[0]),
      End: () => go(shown.at(-1)),
      Enter: open,
      " ": open,
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  }
}
