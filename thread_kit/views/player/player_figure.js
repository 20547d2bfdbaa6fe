// Beside the outline: the tree as a drawing, or the supplemental work of the open thread. What is
// pointed at is said below, over the figure, so that nothing moves.

class Figure {
  constructor(view, side) {
    this.view = view;
    this.figures = { tree: new Drawing(view, side, this), work: new Work(view, side, this) };
    const names = { tree: "Tree", work: "Supplemental work" };
    this.choices = Object.entries(names).map(([name, label]) =>
      button(label, () => view.showFigure(name), { "data-figure": name, title: "w" }),
    );
    this.tools = make("span", {});
    this.text = make("div", { class: "tk-caption", role: "status" });
    this.text.hidden = true;
    this.stage = make("div", { class: "tk-stages" });
    this.element = make(
      "div",
      { class: "tk-figure", role: "group", "aria-label": "figure" },
      make("div", { class: "tk-line" }, make("span", { class: "tk-buttons" }, ...this.choices), this.tools),
      this.stage,
      this.text,
    );
  }

  get shown() {
    return this.figures[this.view.figure];
  }

  show() {
    if (!this.shown) return;
    if (this.stage.firstChild !== this.shown.element) {
      this.stage.replaceChildren(this.shown.element);
      this.tools.replaceChildren(this.shown.tools);
      this.caption(false);
    }
    for (const choice of this.choices) choice.setAttribute("aria-pressed", choice.dataset.figure === this.view.figure);
    this.shown.show();
  }

  mark(id) {
    this.shown?.mark(id);
  }

  // isAbove: what is pointed at stands below.
  caption(isAbove, ...content) {
    this.text.classList.toggle("tk-above", isAbove);
    this.text.hidden = !content.length;
    this.text.replaceChildren(...content);
  }
}
