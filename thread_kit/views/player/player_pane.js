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
      onscroll: () => this.keepsEnd(),
    });
    // Where its size changes, so does the place of the end.
    new ResizeObserver(() => this.wasAtEnd && this.view.follow && this.toEnd()).observe(this.element);
  }

  get thread() {
    return this.view.states[this.side]?.threads[this.view.open[this.side]];
  }

  show() {
    const { thread } = this;
    if (thread && thread === this.shown && this.track === this.view.shown[this.side]) return this.showBelow();
    const isSame = thread?.id === this.shown?.id && this.track === this.view.shown[this.side];
    const before = this.shown;
    this.shown = thread;
    this.track = this.view.shown[this.side];
    if (isSame && thread && this.isWritingOnly(before, thread)) {
      this.showWriting();
      return this.showBelow();
    }
    const whose = this.view.shown.length > 1 ? [" of the original", " of the fork"][this.side] : "";
    this.element.setAttribute("aria-label", (thread ? `thread ${thread.id}` : "no thread") + whose);
    if (!thread) return this.element.replaceChildren(make("p", {}, this.empty()));
    const active = document.activeElement;
    const focused = this.element.contains(active) && active.dataset.key;
    const keepEnd = this.keepsEnd() && Boolean(before || this.view.isLive); // what is over: from its top
    const top = isSame ? this.element.scrollTop : 0;
    this.writing = document.createTextNode(thread.writing);
    this.writingPiece = this.piece("generated", this.writing);
    this.writingPiece.hidden = !thread.writing;
    const ran = thread.lines.map(({ line, error, printed }) => [line, error ?? printed]);
    const done = thread.actions.map(({ action, observation }) => [`> ${action}`, observation]);
    this.branches = new Map();
    this.below = document.createTextNode("");
    this.strip = make("div", {});
    const edits = thread.edits.map(({ what, was, now }) => [what, `${was} → ${now}`]);
    this.element.replaceChildren(
      make("h4", {}, `Thread ${thread.id} `, statusBadge(thread), make("bdi", {}, " " + thread.label)),
      ...(thread.detail ? [make("div", { class: "tk-error" }, thread.detail)] : []),
      make("div", { class: "tk-totals" }, this.below),
      this.strip,
      this.copyButton(thread),
      ...this.table("changed here", edits),
      ...this.prompt(thread),
      this.span(thread.context, thread),
      ...thread.sequence.flatMap((item) =>
        isBranch(item) ? this.branch(item, thread) : [this.span(item, thread)],
      ),
      this.writingPiece,
      ...this.table("futures", thread.futures),
      ...this.variables(thread),
      ...this.table("lines that printed or failed", ran),
      ...thread.pictures.map(picture),
      ...this.table("actions", done),
    );
    this.work = undefined;
    this.showBelow();
    this.element.scrollTop = keepEnd && this.view.follow ? this.element.scrollHeight : top;
    this.wasAtEnd = keepEnd;
    if (focused) this.element.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  empty() {
    const { view } = this;
    if (!view.head.at) return "Nothing has happened yet: step, or press the first button.";
    const missing = view.isDone(this.side) ? "has no such thread" : "has no such thread yet";
    return view.states.length > 1 ? `This side ${missing}.` : `The episode ${missing}.`;
  }

  isWritingOnly(before, thread) {
    return Object.keys(thread).every((name) => name === "writing" || before[name] === thread[name]);
  }

  // One token more, many times a second: only the text that is being written changes.
  showWriting() {
    const keepEnd = this.keepsEnd();
    this.writing.data = this.shown.writing;
    this.writingPiece.hidden = !this.writing.data;
    if (keepEnd && this.view.follow) this.toEnd();
  }

  // What the threads below have come to: they go on while this one waits.
  showBelow() {
    const { threads } = this.view.states[this.side];
    for (const [id, row] of this.branches)
      if (row.child !== threads[id]) {
        row.child = threads[id];
        row.replaceChildren(`↳ thread ${id} `, statusBadge(row.child), make("bdi", {}, ` ${row.child.label}`));
      }
    const work = generatedBy(this.shown.id, threads);
    if (work === this.work) return;
    this.work = work;
    this.below.data = this.costs(this.shown, work);
    this.strip.replaceChildren(...workStrip(this.shown, threads, this.view));
  }

  isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 8;
  }

  // Is it, or was it, where its size has changed since, and with it the place of the end?
  keepsEnd() {
    const { clientWidth, clientHeight } = this.element;
    const size = `${clientWidth} ${clientHeight}`;
    if (size === (this.size ?? size)) this.wasAtEnd = this.isAtEnd();
    this.size = size;
    return this.wasAtEnd;
  }

  // Is the end of what is written read here? What is over and is all in view is read from its top.
  followsEnd() {
    return this.view.follow && this.keepsEnd() && (this.view.isLive || this.element.scrollTop > 0);
  }

  toEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  costs(thread, work) {
    const below = work - thread.usage.generated;
    return [
      `depth ${thread.depth}`,
      thread.costs,
      `by threads below ${number(below)}`,
      `${Number(thread.usage.seconds).toFixed(1)} s`,
    ].join(" · ");
  }

  // Everything that the model has read in this thread by now, to the character.
  copyButton(thread) {
    const status = make("span", { role: "status" });
    const copy = async () => {
      const isCopied = await copyText(this.exactPrompt(thread));
      status.textContent = isCopied ? " copied" : " could not copy: the browser does not let this page";
    };
    const title = "The few-shot prompt, the context and the sequence, to the character";
    return make(
      "div",
      { class: "tk-tools" },
      button("Copy the exact prompt", copy, { title, "data-key": "copy" }),
      status,
    );
  }

  exactPrompt(thread) {
    const { prompts } = this.view.track(this.side).recording.about;
    const prompt = prompts[thread.prompt];
    const pieces = [thread.context, ...thread.sequence.filter((item) => !isBranch(item))];
    const text = pieces.map((piece) => piece.exact ?? piece.text).join("");
    return (prompt ? (prompt.exact ?? prompt.text) : "") + text + thread.writing;
  }

  span(span, thread) {
    const known = this.known.get(span);
    if (known) return known;
    const label = `${span.label} (${number(span.tokens)})`;
    const { marks } = this.view.track(this.side).recording.about;
    const body = span.lengths?.length ? tokens(span, marks) : [span.text.replace(/\n$/, "")];
    const element = this.piece(span.provenance, body, label, this.change(span, thread));
    if (span.logprobs) element.querySelector("pre").append("\n", ...strip(span));
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
  change(span, thread) {
    const what = { observed: "observation", returned: "returned" }[span.provenance];
    const isContext = span === thread.context && thread.parent !== null;
    if (this.view.store.offline || !(what || isContext)) return [];
    const ask = () => this.view.forking.ask(this.side, thread, { kind: what ?? "context", span });
    return [button("Change …", ask, { class: "tk-small", "data-key": `change ${span.event}` })];
  }

  // A token was chosen: the fork can go on from there.
  click(event) {
    const token = event.target.closest?.("[data-t]");
    if (!token || this.view.store.offline) return;
    const span = token.closest(".tk-piece").piece;
    const choice = { kind: "token", span, token: Number(token.dataset.t) };
    this.view.forking.ask(this.side, this.thread, choice);
  }

  branch({ branch }, thread) {
    const child = this.view.states[this.side].threads[branch];
    const xray = this.section(`edge ${branch}`, "phi and psi: what passed", () =>
      make("div", {}, ...edge(child, thread)),
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
    );
    this.branches.set(branch, row);
    return [row, xray];
  }

  prompt(thread) {
    const prompt = this.view.track(this.side).recording.about.prompts[thread.prompt];
    if (!prompt) return [];
    return [this.section("few-shot", prompt.label, () => this.piece("few-shot", prompt.text))];
  }

  variables(thread) {
    const change = (name, value) =>
      button("Change …", () => this.view.forking.ask(this.side, thread, { kind: "variables", name, value }), {
        class: "tk-small",
        "aria-label": `Change ${name}`,
      });
    const rows = thread.variables.map(([name, value]) =>
      this.view.store.offline || name === "…" ? [name, value] : [name, value, change(name, value)],
    );
    return this.table("variables", rows);
  }

  table(name, rows) {
    if (!rows.length) return [];
    const row = (cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)));
    const body = () => make("table", {}, make("tbody", {}, ...rows.map(row)));
    return [this.section(name, `${name}: ${rows.length}`, body)];
  }

  unfold(key) {
    this.unfolded.add(key);
    this.shown = undefined; // built anew
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

const picture = ([path, png]) =>
  make(
    "figure",
    { class: "tk-picture" },
    make("img", { alt: `the picture ${path}`, src: `data:image/png;base64,${png}` }),
    make("figcaption", {}, path),
  );

// Whether a text is in the clipboard now. Where a page may not use it (one of another machine that is
// not served securely has none), there is the older way to it.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const [area, focused] = [make("textarea", {}), document.activeElement];
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused?.focus({ preventScroll: true });
    return isCopied;
  }
}
