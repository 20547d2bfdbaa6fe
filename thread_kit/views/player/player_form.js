// A form of the player, below the episode: hidden until it is opened; Escape leaves it, Enter sends it.

class Form {
  constructor(view, label, look) {
    this.view = view;
    this.element = make("form", {
      class: `tk-form ${look}`,
      "aria-label": label,
      onsubmit: (event) => {
        event.preventDefault();
        this.send();
      },
      onkeydown: (event) => event.key === "Escape" && this.close(),
    });
    this.element.hidden = true;
  }

  close() {
    this.element.hidden = true;
    this.element.replaceChildren();
    this.view.element.focus();
  }

  // action: what the button says that sends it.
  open(action, ...content) {
    this.element.replaceChildren(
      ...content,
      make("span", { class: "tk-buttons" }, make("button", { type: "submit", class: "tk-main" }, action), button("Cancel", () => this.close())),
    );
    this.element.hidden = false;
    this.element.scrollIntoView({ block: "nearest" });
  }
}
