
// The page's side of the shop (shop.py). All text of products and of the environment goes into the
// page as text, never as markup. Each click asks the kernel, whose environment says what comes of it.

const NO_KERNEL = "The kernel was restarted or has ended: run the cell again to shop on.";
const WAITING = "Waiting for the kernel.";
const PATIENCE = 300; // milliseconds

class ShopView {
  constructor(model, el) {
    this.model = model;
    this.notice = make("p", { class: "tk-shop-notice", role: "status", "aria-live": "polite" });
    this.page = make("div", { class: "tk-shop-page" });
    this.side = make("div", { class: "tk-shop-side" });
    this.element = make(
      "div",
      { class: "tk-shop", role: "group", "aria-label": "shop", tabindex: "0" },
      this.page,
      this.notice,
      this.side,
    );
    keepKeys(this.element);
    el.append(this.element);
    this.unfolded = false;
    this.show();
  }

  send(message) {
    if (this.isDead || this.isWaiting) return this.say(this.isDead ? NO_KERNEL : WAITING);
    try {
      this.model.send(message);
      this.isWaiting = true;
      this.element.setAttribute("aria-busy", "true");
      this.patience = setTimeout(() => this.say(WAITING), PATIENCE);
    } catch {
      this.die();
    }
  }

  say(text) {
    this.notice.textContent = text;
  }

  die() {
    this.isDead = true;
    this.isWaiting = false;
    clearTimeout(this.patience);
    this.say(NO_KERNEL);
  }

  click(label, more = {}) {
    const onclick = () => this.send({ do: "click", text: label });
    return make("button", { type: "button", onclick, "data-key": label, ...more }, label);
  }

  show() {
    const state = JSON.parse(this.model.get("state"));
    this.isWaiting = false;
    clearTimeout(this.patience);
    this.element.removeAttribute("aria-busy");
    const { activeElement } = document;
    const had = this.element.contains(activeElement);
    const key = had && activeElement.dataset.key;
    const body = state.bought
      ? this.bought(state)
      : state.product
        ? this.product(state)
        : state.results
          ? this.results(state)
          : this.search();
    this.page.replaceChildren(make("p", { class: "tk-shop-goal" }, make("b", {}, "Buy: "), state.instruction), ...body);
    const last = state.actions.at(-1);
    this.say(
      state.is_invalid
        ? `The shop does not know what to do with ${last}: Invalid action!`
        : state.is_over && !state.bought
          ? "That was the last action that this task allows."
          : "",
    );
    this.side.replaceChildren(this.read(state), this.again());
    if (!had) return;
    // What had the focus is gone: its double has it now, or what one came for.
    const elements = [...this.element.querySelectorAll("[data-key]")];
    const next = elements.find((element) => element.dataset.key === key)
      ?? this.page.querySelector("input, ul button, .tk-shop-options button")
      ?? this.page.querySelector("[data-key]");
    (next ?? this.element).focus({ preventScroll: true });
  }

  search() {
    const box = make("input", { type: "search", "aria-label": "search", "data-key": "search box" });
    const onsubmit = (event) => {
      event.preventDefault();
      this.send({ do: "search", text: box.value });
    };
    return [make("form", { class: "tk-shop-search", onsubmit }, box, make("button", {}, "Search"))];
  }

  bar({ buttons }, ...more) {
    return make("div", { class: "tk-shop-bar" }, ...buttons.map((label) => this.click(label)), ...more);
  }

  results(state) {
    const rows = state.results.map(({ id, title, price }) =>
      make("li", {}, this.click(id), make("span", {}, title), make("b", {}, price)),
    );
    const none = rows.length ? [] : [make("p", {}, "No product was found.")];
    return [this.bar(state, make("span", {}, state.place)), make("ul", {}, ...rows), ...none];
  }

  product(state) {
    const { title, price, id } = state.product;
    const head = [make("h4", {}, title), make("p", {}, make("b", {}, price), ` ${id}`)];
    if (state.detail)
      return [this.bar(state), ...head, ...state.detail.map((line) => make("p", {}, line))];
    const options = state.options.map(({ name, values, chosen }) =>
      make(
        "div",
        { class: "tk-shop-options", role: "group", "aria-label": name },
        make("span", {}, `${name}:`),
        ...values.map((value) => this.click(value, { "aria-pressed": String(value === chosen) })),
      ),
    );
    const back = state.buttons.slice(0, 2);
    const further = state.buttons.slice(2);
    return [this.bar({ buttons: back }), ...head, ...options, this.bar({ buttons: further })];
  }

  bought({ product, bought }) {
    const rows = bought.parts.map(([kind, wanted, isMet]) =>
      make("tr", {}, make("td", {}, isMet ? "✓ yes" : "✗ no"), make("td", {}, kind), make("td", {}, wanted)),
    );
    const type = make("tr", {}, make("td", {}, `× ${bought.type}`), make("td", {}, "type"), make("td", {}, "how much it is the right kind of product"));
    return [
      make("h4", {}, `Bought: ${product.title}, ${product.price}`),
      make("p", { class: "tk-shop-reward" }, "Reward ", make("b", {}, bought.reward)),
      make("table", {}, make("tbody", {}, ...rows, type)),
      make("p", {}, make("code", {}, bought.formula)),
      make("p", {}, "(type × (attributes + options + price) / all that was asked)"),
    ];
  }

  // What a model reads, and what it would have written for what was clicked.
  read({ read, actions }) {
    const ontoggle = (event) => (this.unfolded = event.target.open);
    const done = actions.map((action) => make("li", {}, make("code", {}, action)));
    return make(
      "details",
      { open: this.unfolded, ontoggle },
      make("summary", { "data-key": "as a model" }, `As a model has it: ${pluralize(actions.length, "action")}`),
      make("ol", {}, ...done),
      make("pre", {}, read),
    );
  }

  again() {
    const onclick = () => this.send({ do: "again" });
    return make("button", { type: "button", onclick, "data-key": "again" }, "Start again");
  }
}

export default {
  render({ model, el }) {
    const view = new ShopView(model, el);
    const show = () => view.show();
    const die = () => view.die();
    model.on("change:state", show);
    model.on("comm_live_update", die);
    return () => {
      model.off("change:state", show);
      model.off("comm_live_update", die);
    };
  },
};
