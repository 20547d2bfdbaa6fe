
// StateFlow's machine above the tree (state_machine.py): which state the moment that is shown is in.
// The picture is Python's; here its states and edges are only marked.

const LEAST = 0.75; // of its own size: letters of 10.5 pixels

class MachinePanel {
  constructor(view) {
    this.view = view;
    Object.assign(this, JSON.parse(view.store.model.get("machine")));
    this.pattern = new RegExp(this.tag);
    this.picture = make("div", {
      class: "tk-machine-picture",
      role: "group",
      "aria-label": "states",
      tabindex: "0",
    });
    this.picture.innerHTML = this.svg; // drawn by the kit from the table; names in it are escaped
    // Where there is less room its letters stay readable: it scrolls, to the state of the moment.
    const drawing = this.picture.firstChild;
    drawing.style.minWidth = `${LEAST * drawing.viewBox.baseVal.width}px`;
    new ResizeObserver(() => this.scroll()).observe(this.picture);
    this.caption = make("div", { class: "tk-machine-caption", role: "status", "aria-live": "polite" });
    this.element = make(
      "div",
      { class: "tk-machine", role: "region", "aria-label": "state machine" },
      this.picture,
      this.caption,
    );
  }

  // The states up to this moment: the start, each that a program has named, the end.
  wayOf({ threads }) {
    if (!threads[0]) return [];
    const named = Object.values(threads)
      .flatMap(({ sequence }) => sequence)
      .filter((piece) => piece.provenance === "instruction")
      .map(({ text, event }) => [event, this.pattern.exec(text)?.[1]])
      .filter(([, name]) => this.states.includes(name))
      .sort(([a], [b]) => a - b);
    const names = named.map(([, name]) => name);
    // A start with an agent, as ALFWorld's, is named, too: it is the one there is.
    if (names[0] !== this.start) names.unshift(this.start);
    return threads[0].status === "ended" ? [...names, this.final] : names;
  }

  scroll() {
    const state = this.picture.querySelector(".tk-state.tk-now");
    if (!state) return;
    const [there, here] = [state, this.picture].map((element) => element.getBoundingClientRect());
    if (there.left < here.left || there.right > here.right)
      this.picture.scrollLeft += (there.left + there.right - here.left - here.right) / 2;
  }

  show() {
    const way = this.wayOf(this.view.states.at(-1));
    if (way.join() === this.shown) return;
    this.shown = way.join();
    const [before, now] = [way.at(-2), way.at(-1)];
    const steps = new Set(way.slice(1).map((name, k) => `${way[k]} ${name}`));
    for (const state of this.picture.querySelectorAll(".tk-state")) {
      const times = way.filter((name) => name === state.dataset.state).length;
      state.classList.toggle("tk-now", state.dataset.state === now);
      state.classList.toggle("tk-was", times > 0);
      state.querySelector(".tk-times").textContent = times > 1 ? `×${times}` : "";
    }
    for (const { classList, dataset } of this.picture.querySelectorAll(".tk-edge")) {
      classList.toggle("tk-was", steps.has(`${dataset.from} ${dataset.to}`));
      classList.toggle("tk-now", dataset.from === before && dataset.to === now);
    }
    this.scroll();
    const reason = this.reasons[`${before} ${now}`];
    const last = before ? `${before} → ${now}` : now ?? "not begun";
    this.caption.textContent = `state ${way.length}: ${last}${reason ? ` (${reason})` : ""}`;
    this.caption.title = way.join(" → ");
  }
}

PANELS.push((view) => new MachinePanel(view));
