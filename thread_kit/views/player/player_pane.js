// What one thread saw, wrote and got back, as it was at the moment that is shown.

class Pane {
  constructor(view, side) {
    this.view = view;
    this.side = side;
    this.unfolded = new Set(); // sections that are open, in whichever thread is shown
    this.known = new WeakMap(); // the elements of pieces, which never change
    this.element = make("div", {
      class: "tk-pane",
      role: "region",
      tabindex: "0",
      onclick: (event) => this.click(event),
    });
  }

  get one() {
    return this.view.states[this.side]?.threads[this.view.open[this.side]];
  }

  show() {
    const { one } = this;
    if (one === this.shown && this.track === this.view.shown[this.side]) return;
    const isSame = one?.id === this.shown?.id && this.track === this.view.shown[this.side];
    const before = this.shown;
    this.shown = one;
    this.track = this.view.shown[this.side];
    if (isSame && one && this.isWritingOnly(before, one)) return this.showWriting();
    this.element.setAttribute("aria-label", one ? `thread ${one.id}` : "no thread");
    if (!one) return this.element.replaceChildren(make("p", {}, "There is no such thread here."));
    const active = document.activeElement;
    const focused = this.element.contains(active) && active.dataset.key;
    const keepEnd = this.isAtEnd();
    const top = isSame ? this.element.scrollTop : 0;
    this.writing = document.createTextNode(one.writing);
    this.writingPiece = this.piece("generated", this.writing);
    this.writingPiece.hidden = !one.writing;
    const ran = one.lines.map(({ line, error, printed }) => [line, error ?? printed]);
    const done = one.actions.map(({ action, observation }) => [`> ${action}`, observation]);
    const edits = one.edits.map(({ what, was, now }) => [what, `${was} → ${now}`]);
    this.element.replaceChildren(
      make("h4", {}, `Thread ${one.id} `, doing(one), make("bdi", {}, " " + nameOf(one))),
      ...(one.detail ? [make("div", { class: "tk-error" }, one.detail)] : []),
      make("div", { class: "tk-totals" }, this.costs(one)),
      ...workStrip(one, this.view.states[this.side].threads, this.view),
      this.copying(one),
      ...this.table("changed here", edits),
      ...this.prompt(one),
      this.span(one.context, one),
      ...one.sequence.flatMap((item) =>
        isBranch(item) ? this.branch(item, one) : [this.span(item, one)],
      ),
      this.writingPiece,
      ...this.table("futures", one.futures),
      ...this.variables(one),
      ...this.table("lines that printed or failed", ran),
      ...this.table("actions", done),
    );
    this.element.scrollTop = keepEnd && this.view.follow ? this.element.scrollHeight : top;
    if (focused) this.element.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  isWritingOnly(before, one) {
    return Object.keys(one).every((name) => name === "writing" || before[name] === one[name]);
  }

  // One token more, many times a second: only the text that is being written changes.
  showWriting() {
    const keepEnd = this.isAtEnd();
    this.writing.data = this.shown.writing;
    this.writingPiece.hidden = !this.writing.data;
    if (keepEnd && this.view.follow) this.element.scrollTop = this.element.scrollHeight;
  }

  isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 8;
  }

  costs(one) {
    const { threads } = this.view.states[this.side];
    let below = -one.usage.generated;
    const waiting = [one];
    while (waiting.length) {
      const next = waiting.pop();
      below += next.usage.generated;
      for (const child of childrenOf(next)) waiting.push(threads[child]);
    }
    return [
      `depth ${one.depth}`,
      ...costs(one.usage),
      `by threads below ${number(below)}`,
      `${one.usage.seconds.toFixed(1)} s`,
    ].join(" · ");
  }

  // Everything that the model has read in this thread by now, to the character.
  copying(one) {
    const said = make("span", { role: "status" });
    const copy = async () => {
      await navigator.clipboard.writeText(this.seen(one));
      said.textContent = " copied";
    };
    const title = "The few-shot prompt, the context and the sequence, to the character";
    return make(
      "div",
      { class: "tk-tools" },
      button("Copy the exact prompt", copy, { title, "data-key": "copy" }),
      said,
    );
  }

  seen(one) {
    const { prompts } = this.view.track(this.side).film.about;
    const prompt = prompts[one.prompt];
    const pieces = [one.context, ...one.sequence.filter((item) => !isBranch(item))];
    const text = pieces.map((piece) => piece.exact ?? piece.text).join("");
    return (prompt ? (prompt.exact ?? prompt.text) : "") + text + one.writing;
  }

  span(span, one) {
    const known = this.known.get(span);
    if (known) return known;
    let label = span.provenance;
    const word = span.provenance === "reference" ? "to" : "by";
    if (span.child !== null) label += ` ${word} thread ${span.child}`;
    if (one.actions[span.action]?.reward === null) label += ", not executed";
    label += ` (${number(span.tokens)})`;
    const { marks } = this.view.track(this.side).film.about;
    const body = span.lengths?.length ? tokens(span, marks) : [span.text.replace(/\n$/, "")];
    const element = this.piece(span.provenance, body, label, this.change(span, one));
    if (span.logprobs) element.querySelector("pre").append("\n", strip(span));
    element.piece = span;
    this.known.set(span, element);
    return element;
  }

  piece(provenance, body, label = provenance, tools = []) {
    return make(
      "div",
      { class: `tk-piece ${css(provenance)}` },
      make("span", { class: "tk-label" }, label, ...tools),
      make("pre", {}, ...(Array.isArray(body) ? body : [body])),
    );
  }

  // What a person can change in a piece, as a fork.
  change(span, one) {
    const what = { observed: "observation", returned: "returned" }[span.provenance];
    const isContext = span === one.context && one.parent !== null;
    if (this.view.store.offline || !(what || isContext)) return [];
    const ask = () => this.view.forking.ask(this.side, one, { kind: what ?? "context", span });
    return [button("Change …", ask, { class: "tk-small", "data-key": `change ${span.event}` })];
  }

  // A token was chosen: the fork can go on from there.
  click(event) {
    const token = event.target.closest?.("[data-t]");
    if (!token || this.view.store.offline) return;
    const span = token.closest(".tk-piece").piece;
    const choice = { kind: "token", span, token: Number(token.dataset.t) };
    this.view.forking.ask(this.side, this.one, choice);
  }

  branch({ branch }, one) {
    const child = this.view.states[this.side].threads[branch];
    const xray = this.section(`edge ${branch}`, "phi and psi: what passed", () =>
      make("div", {}, ...edge(child, one)),
    );
    const row = make(
      "button",
      {
        type: "button",
        class: "tk-branch",
        "data-key": `thread ${branch}`,
        onclick: () => this.view.pickThread(this.side, String(branch)),
        onmouseenter: () => this.view.point(String(branch)),
        onmouseleave: () => this.view.point(null),
      },
      `↳ thread ${branch} `,
      doing(child),
      make("bdi", {}, " " + nameOf(child)),
    );
    return [row, xray];
  }

  prompt(one) {
    const prompt = this.view.track(this.side).film.about.prompts[one.prompt];
    if (!prompt) return [];
    const title = `few-shot prompt ${prompt.name}: ${count(prompt.tokens, "token")}`;
    return [this.section("few-shot", title, () => this.piece("few-shot", prompt.text))];
  }

  variables(one) {
    const change = (name, value) =>
      button("Change …", () => this.view.forking.ask(this.side, one, { kind: "variables", name, value }), {
        class: "tk-small",
        "aria-label": `Change ${name}`,
      });
    const rows = one.variables.map(([name, value]) =>
      this.view.store.offline ? [name, value] : [name, value, change(name, value)],
    );
    return this.table("variables", rows);
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
