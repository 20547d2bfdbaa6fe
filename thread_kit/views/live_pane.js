// The pane of the live widget: what one thread saw, wrote and got back.

class Pane {
  constructor(view) {
    this.view = view;
    this.unfolded = new Set(); // sections that are open, in whichever thread is shown
    this.element = make("div", { class: "tk-pane", role: "region", tabindex: "0" });
  }

  show() {
    const one = this.view.state.threads[this.view.open];
    if (!one) return;
    const active = document.activeElement;
    const focused = this.element.contains(active) && active.dataset.key;
    const keepEnd = this.isAtEnd();
    const top = this.shown === one.id ? this.element.scrollTop : 0;
    this.shown = one.id;
    this.writing = document.createTextNode(one.writing);
    this.writingPiece = this.piece("generated", this.writing);
    this.writingPiece.hidden = !one.writing;
    const ran = one.lines.map(({ line, error, printed }) => [line, error ?? printed]);
    const done = one.actions.map(({ action, observation }) => [`> ${action}`, observation]);
    this.element.setAttribute("aria-label", `thread ${one.id}`);
    this.element.replaceChildren(
      make("h4", {}, `Thread ${one.id} `, doing(one), make("bdi", {}, " " + nameOf(one))),
      ...(one.detail ? [make("div", { class: "tk-error" }, one.detail)] : []),
      make("div", { class: "tk-totals" }, this.costs(one)),
      ...this.prompt(one),
      this.span(one.context, one),
      ...one.sequence.map((item) => (isBranch(item) ? this.branch(item) : this.span(item, one))),
      this.writingPiece,
      ...this.table("futures", one.futures),
      ...this.table("variables", one.variables),
      ...this.table("lines that printed or failed", ran),
      ...this.table("actions", done),
    );
    const running = this.view.follow && this.view.state.phase !== "over";
    this.element.scrollTop = keepEnd && running ? this.element.scrollHeight : top;
    if (focused) this.element.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  // One token more, many times a second: only the text that is being written changes.
  showWriting() {
    const keepEnd = this.isAtEnd();
    this.writing.data = this.view.state.threads[this.view.open].writing;
    this.writingPiece.hidden = !this.writing.data;
    if (keepEnd && this.view.follow) this.element.scrollTop = this.element.scrollHeight;
  }

  isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 8;
  }

  costs(one) {
    let below = -one.usage.generated;
    const waiting = [one];
    while (waiting.length) {
      const next = waiting.pop();
      below += next.usage.generated;
      for (const { branch } of next.sequence.filter(isBranch))
        waiting.push(this.view.state.threads[branch]);
    }
    return [
      `depth ${one.depth}`,
      ...costs(one.usage),
      `by threads below ${number(below)}`,
      `${one.usage.seconds.toFixed(1)} s`,
    ].join(" · ");
  }

  span(span, one) {
    let label = span.provenance;
    const word = span.provenance === "reference" ? "to" : "by";
    if (span.child !== null) label += ` ${word} thread ${span.child}`;
    if (one.actions[span.action]?.reward === null) label += ", not executed";
    label += ` (${number(span.tokens)})`;
    return this.piece(span.provenance, span.text.replace(/\n$/, ""), label);
  }

  piece(provenance, text, label = provenance) {
    return make(
      "div",
      { class: `tk-piece ${css(provenance)}` },
      make("span", { class: "tk-label" }, label),
      make("pre", {}, text),
    );
  }

  branch({ branch }) {
    const child = this.view.state.threads[branch];
    return make(
      "button",
      {
        type: "button",
        class: "tk-branch",
        "data-key": `thread ${branch}`,
        onclick: () => this.view.pick(String(branch)),
      },
      `↳ thread ${branch} `,
      doing(child),
      make("bdi", {}, " " + nameOf(child)),
    );
  }

  prompt(one) {
    const prompt = this.view.state.prompts[one.prompt];
    if (!prompt) return [];
    const title = `few-shot prompt ${prompt.name}: ${count(prompt.tokens, "token")}`;
    return [this.section("few-shot", title, () => this.piece("few-shot", prompt.text))];
  }

  table(name, rows) {
    if (!rows.length) return [];
    const row = (cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));
    const body = () => make("table", {}, make("tbody", {}, ...rows.map(row)));
    return [this.section(name, `${name}: ${rows.length}`, body)];
  }

  // A part that folds; what is folded is not built.
  section(key, title, body) {
    const open = this.unfolded.has(key);
    const summary = make("summary", { "data-key": key }, title);
    const element = make("details", { open }, summary, ...(open ? [body()] : []));
    element.addEventListener("toggle", () => {
      if (element.open) this.unfolded.add(key);
      else this.unfolded.delete(key);
      if (element.open && element.childElementCount === 1) element.append(body());
    });
    return element;
  }
}
