// Supplemental work of one thread (THREAD paper, appendix A, Figure 3): above each of its tokens,
// how many tokens threads below generated for it. It grows with the episode.

const [PLOT, LEFT, BOTTOM, RIBBON] = [{ width: 600, height: 210 }, 52, 44, 8];

// What there is of a thread: parts {start, tokens, child, work, provenance}, then the children
// that have given nothing back yet.
export function workOf(threads, id, writing = 0) {
  const thread = threads[id];
  if (!thread) return { parts: [], open: [], length: 0, most: 0 };
  const parts = [];
  let length = 0;
  const add = (tokens, provenance, child = null) => {
    const work = child === null ? 0 : generatedBy(child, threads);
    parts.push({ start: length, tokens, provenance, child, work });
    length += tokens;
  };
  const pieces = thread.sequence.filter((item) => !isBranch(item));
  for (const { tokens, provenance, child } of pieces) add(tokens, provenance, child ?? null);
  if (writing) add(writing, "generated");
  const back = new Set(pieces.map(({ child }) => String(child)));
  const open = childrenOf(thread)
    .filter((child) => !back.has(child))
    .map((child) => ({ child, work: generatedBy(child, threads) }));
  return { parts, open, length, most: Math.max(0, ...[...parts, ...open].map(({ work }) => work)) };
}

// The labels of an axis: whole numbers, each once, and each where it says.
const threeOf = (most) => [...new Set([0, Math.floor(most / 2), most])];

class Work {
  constructor(view, side, figure) {
    Object.assign(this, { view, side, figure });
    this.pointed = null; // the bar that the keyboard is at
    this.svg = draw("svg", {
      class: "tk-plot",
      role: "img",
      tabindex: "0",
      viewBox: `0 0 ${PLOT.width} ${PLOT.height}`,
      onmousemove: (event) => this.describe(this.barAt(event)),
      onmouseleave: () => this.describe(null),
      onclick: (event) => this.pick(this.barAt(event)),
      onkeydown: (event) => this.key(event),
      onblur: () => this.describe(null),
    });
    this.element = make("div", { class: "tk-stage" }, this.svg);
    this.tools = make("span", {});
  }

  // Tokens of a call that is not over: they are in no piece yet.
  writing(side) {
    const thread = this.view.states[side].threads[this.view.open[side]];
    if (!thread?.writing) return 0;
    const { frames } = this.view.track(side).recording;
    let count = 0;
    for (let n = this.view.at(side) - 1; n >= 0; n--) {
      const frame = frames[n];
      if (frame.thread === thread.id && frame.kind === "generatedspan") break;
      if (frame.thread === thread.id && "token" in frame) count++;
    }
    return count;
  }

  show() {
    const { view, side } = this;
    const all = view.states.map(({ threads }, n) => workOf(threads, view.open[n], this.writing(n)));
    this.data = all[side];
    const length = Math.max(...all.map(({ length }) => length), 10);
    const most = Math.max(...all.map(({ most }) => most), 1); // side by side: the same scales
    const shown = JSON.stringify([this.data, length, most, view.open[side]]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.draw(length, most);
  }

  draw(length, most) {
    const { parts, open } = this.data;
    const ghost = open.length ? Math.max(length * 0.04, 1) : 0;
    const right = PLOT.width - 24;
    const x = (token) => LEFT + ((right - LEFT) * token) / (length + ghost * open.length);
    const ground = PLOT.height - BOTTOM;
    const y = (work) => ground - ((ground - 22) * work) / most;
    this.token = (px) => ((px - LEFT) * (length + ghost * open.length)) / (right - LEFT);
    this.bars = [
      ...parts.filter(({ child }) => child !== null).map((part) => ({ ...part, stop: part.start + part.tokens })),
      ...open.map((part, n) => ({ ...part, isOpen: true, start: this.data.length + n * ghost, stop: this.data.length + (n + 1) * ghost })),
    ];
    const bars = this.bars.map(({ start, stop, work, child, isOpen }) =>
      draw("rect", {
        class: isOpen ? "tk-work-open" : "tk-work-done",
        "data-work": child,
        x: x(start),
        width: Math.max(x(stop) - x(start), 1.5),
        y: y(work),
        height: ground - y(work),
      }),
    );
    const ribbon = parts.map(({ start, tokens, provenance }) =>
      draw("rect", { class: `tk-ribbon ${css(provenance)}`, x: x(start), width: x(start + tokens) - x(start), y: ground + 2, height: RIBBON }),
    );
    const id = this.view.open[this.side];
    const label = `supplemental work in thread ${id}: ${number(this.data.length)} tokens, at most ${number(this.data.most)} of other threads for one of them`;
    this.svg.setAttribute("aria-label", label);
    this.svg.replaceChildren(
      draw("text", { x: LEFT, y: 13 }, `thread ${id}: tokens that threads below generated, for each of its tokens`),
      ...threeOf(most).flatMap((work) => [
        draw("line", { x1: LEFT, x2: right, y1: y(work), y2: y(work) }),
        draw("text", { class: "tk-left", x: LEFT - 5, y: y(work) + 4 }, number(work)),
      ]),
      ...bars,
      ...ribbon,
      ...threeOf(length).map((token) =>
        draw("text", { class: "tk-middle", x: x(token), y: ground + RIBBON + 15 }, number(token)),
      ),
      draw("text", { class: "tk-middle", x: (LEFT + right) / 2, y: PLOT.height - 4 }, "position in its sequence (tokens)"),
    );
  }

  barAt(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = Math.min(box.width / PLOT.width, box.height / PLOT.height); // it stands in the middle
    const px = (event.clientX - box.left - (box.width - PLOT.width * scale) / 2) / scale;
    const token = this.token?.(px);
    return this.bars?.find(({ start, stop }) => token >= start && token < stop) ?? null;
  }

  describe(bar) {
    this.view.point(bar && this.view.partners(String(bar.child), this.side).at(-1));
    if (!bar) return this.figure.caption(false);
    const tokens = bar.isOpen ? "so far; nothing has come back yet" : `for these ${number(bar.tokens)} tokens`;
    const { threads } = this.view.states[this.side];
    const child = threads[bar.child];
    const what = `Thread ${bar.child} and those below it generated ${number(bar.work)} tokens ${tokens}`;
    this.figure.caption(false, make("div", {}, what), ...passed(child, threads[child.parent]));
  }

  mark(id) {
    for (const bar of this.svg.querySelectorAll("[data-work]")) bar.classList.toggle("tk-pointed", bar.dataset.work === id);
  }

  pick(bar) {
    if (bar) this.view.pickThread(this.side, String(bar.child));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.bars?.length) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return this.pick(this.pointed);
    const place = this.bars.findIndex(({ child }) => child === this.pointed?.child);
    const next = place < 0 ? (step > 0 ? 0 : this.bars.length - 1) : place + step;
    this.pointed = this.bars[Math.max(0, Math.min(next, this.bars.length - 1))];
    this.describe(this.pointed);
  }
}
