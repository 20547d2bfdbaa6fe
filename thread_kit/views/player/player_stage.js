// Where a drawing lies: as large as it fits, or as a person has it; it scrolls itself, and never the
// notebook.

const [NEAREST, LARGEST, LEGIBLE, FARTHEST] = [3, 1.25, 0.7, 0.03]; // scales

class Stage {
  constructor(svg) {
    this.svg = svg;
    this.zoom = null; // as it fits
    this.size = null; // in pixels, at the scale 1
    this.farthest = LEGIBLE; // to fit all
    this.element = make(
      "div",
      { class: "tk-stage", onwheel: (event) => this.wheel(event), onpointerdown: (event) => this.drag(event) },
      svg,
    );
    new ResizeObserver(() => this.scaleTo()).observe(this.element);
  }

  // The scale at which so many pixels are all seen.
  fits([width, height]) {
    const { clientWidth, clientHeight } = this.element;
    return Math.min((clientWidth - 4) / width, (clientHeight - 4) / height, LARGEST);
  }

  get scale() {
    return this.zoom ?? Math.max(this.fits(this.size), this.farthest);
  }

  scaleTo() {
    if (!this.size || !this.element.clientWidth) return;
    const { scale, svg } = this;
    const [width, height] = this.size;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.width = `${width * scale}px`;
    svg.style.height = `${height * scale}px`;
    svg.classList.toggle("tk-far", scale < LEGIBLE / 2);
  }

  fit() {
    this.zoom = null;
    this.scaleTo();
  }

  // What is at (x, y) stays there.
  zoomBy(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const before = this.scale;
    const { scrollLeft, scrollTop } = this.element;
    this.zoom = Math.min(Math.max(before * factor, FARTHEST), NEAREST);
    this.scaleTo();
    const by = this.zoom / before;
    this.element.scrollLeft = (scrollLeft + x) * by - x;
    this.element.scrollTop = (scrollTop + y) * by - y;
  }

  wheel(event) {
    if (!event.ctrlKey) return; // the notebook scrolls
    event.preventDefault();
    const box = this.element.getBoundingClientRect();
    this.zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - box.left, event.clientY - box.top);
  }

  drag(event) {
    if (event.button || event.target.closest(".tk-node, .tk-link")) return;
    const { element } = this;
    const [x, y] = [event.clientX + element.scrollLeft, event.clientY + element.scrollTop];
    const move = ({ clientX, clientY }) => element.scrollTo(x - clientX, y - clientY);
    element.setPointerCapture(event.pointerId);
    element.addEventListener("pointermove", move);
    element.addEventListener("lostpointercapture", () => element.removeEventListener("pointermove", move), { once: true });
  }

  reveal(x, y) {
    const { element, scale } = this;
    const near = (at, size, scroll) => (at - 40 < scroll ? at - 40 : at + 40 > scroll + size ? at + 40 - size : scroll);
    element.scrollLeft = near(x * scale, element.clientWidth, element.scrollLeft);
    element.scrollTop = near(y * scale, element.clientHeight, element.scrollTop);
  }

  isBelowMiddle(y) {
    const { clientHeight, scrollTop } = this.element;
    const above = Math.max((clientHeight - this.size[1] * this.scale) / 2, 0); // it stands in the middle
    return y * this.scale + above - scrollTop > clientHeight / 2;
  }
}
