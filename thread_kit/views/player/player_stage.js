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
    this.room = [0, 0]; // known, and not asked for: that would lay out the whole page each time
    new ResizeObserver(() => {
      this.room = [this.element.clientWidth, this.element.clientHeight];
      this.scaleTo();
      this.onresize?.();
    }).observe(this.element);
  }

  // The scale at which so many pixels are all seen.
  fits([width, height]) {
    return Math.min((this.room[0] - 4) / width, (this.room[1] - 4) / height, LARGEST);
  }

  get scale() {
    return this.zoom ?? Math.max(this.fits(this.size), this.farthest);
  }

  scaleTo() {
    if (!this.size || !this.room[0]) return;
    const { scale, svg } = this;
    const shown = [scale, ...this.size].join();
    if (shown === this.shown) return;
    this.shown = shown;
    const [width, height] = this.size;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.width = `${width * scale}px`;
    svg.style.height = `${height * scale}px`;
    svg.classList.toggle("tk-far", scale < LEGIBLE / 2);
  }

  // What is free above it and at its left: it stands in the middle.
  margins(scale = this.scale) {
    return this.size.map((size, way) => Math.max((this.room[way] - size * scale) / 2, 0));
  }

  fit() {
    this.zoom = null;
    this.scaleTo();
  }

  // What is at (x, y) stays there.
  zoomBy(factor, x = this.room[0] / 2, y = this.room[1] / 2) {
    const before = this.scale;
    const { scrollLeft, scrollTop } = this.element;
    this.zoom = Math.min(Math.max(before * factor, FARTHEST), NEAREST);
    this.scaleTo();
    const by = this.zoom / before;
    const [left, above] = this.margins(before);
    this.element.scrollLeft = (scrollLeft + x - left) * by - x;
    this.element.scrollTop = (scrollTop + y - above) * by - y;
  }

  // Where a node is seen; [] if it is not.
  placeOf(x, y) {
    const { scrollLeft, scrollTop } = this.element;
    const [left, above] = this.margins();
    const place = [x * this.scale + left - scrollLeft, y * this.scale + above - scrollTop];
    return place.every((at, way) => at >= 0 && at <= this.room[way]) ? place : [];
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
    if (!this.room[0]) return;
    const { element, scale } = this;
    const near = (at, size, scroll) => (at - 40 < scroll ? at - 40 : at + 40 > scroll + size ? at + 40 - size : scroll);
    const isWhole = this.size.every((size, way) => size * scale <= this.room[way]);
    if (isWhole) return;
    element.scrollLeft = near(x * scale, this.room[0], element.scrollLeft);
    element.scrollTop = near(y * scale, this.room[1], element.scrollTop);
  }

  isBelowMiddle(y) {
    return y * this.scale + this.margins()[1] - this.element.scrollTop > this.room[1] / 2;
  }
}
