// Be the model: a call that a person may write. Below the episode, so that it moves nothing of it.

class Asking {
  constructor(view) {
    this.view = view;
    this.element = make("div", { class: "tk-ask" });
    this.element.hidden = true;
  }

  show() {
    const { view } = this;
    const { now, recording } = view.track();
    const thread = view.store.offline ? undefined : now.asks[0];
    const call = thread === undefined ? "" : `${view.selected} ${thread}`;
    const isHidden = !call || !view.isAtEnd; // a look back keeps what is half written
    if (call === this.call && isHidden === this.element.hidden) return;
    const had = this.element.contains(document.activeElement);
    if (call && call !== this.call) this.build(thread, recording.about.marks);
    this.call = call;
    this.element.hidden = isHidden;
    // Between two calls of a person there is no field: the player keeps the focus for the next one.
    if (had && isHidden) view.element.focus({ preventScroll: true });
    else if (!isHidden && (had || (this.hadFocus && document.activeElement === view.element)))
      this.area.focus({ preventScroll: true });
    this.hadFocus = had && isHidden;
  }

  build(thread, marks) {
    const { view } = this;
    const hint = make("div", { role: "status" });
    const area = make("textarea", {
      rows: "3",
      spellcheck: "false",
      "aria-label": `write as thread ${thread}`,
      onkeydown: (event) => event.key === "Enter" && event.ctrlKey && write(),
    });
    const ends = [marks.listen, marks.spawn, marks.end].filter(Boolean);
    const write = () => {
      if (!area.value || !view.send({ do: "write", thread, text: area.value })) return;
      const isOver = ends.some((mark) => area.value.includes(mark));
      const same = area.value.endsWith("\n") ? "" : " What you write next goes on in the same line.";
      const more = `Written, and it is still your turn: a call goes on until ${ends.join(" or ")}.${same}`;
      hint.textContent = isOver ? "" : more;
      area.value = "";
      area.focus();
    };
    const pass = (always) => view.send({ do: "pass", thread, always });
    this.area = area;
    this.element.replaceChildren(
      make("b", {}, `You are the model: what does thread ${thread} write next?`),
      make("div", {}, `Lines of Python run. ${marks.listen} asks for a child, or for an action behind “>”; ${marks.end} ends the thread, and its last print(...) is what its parent gets.`),
      area,
      hint,
      make(
        "span",
        { class: "tk-buttons" },
        button("Write", write, { class: "tk-main", title: "Ctrl+Enter" }),
        button("Let the model write this", () => pass(false)),
        button("… and the rest of this thread", () => pass(true)),
      ),
    );
  }
}
