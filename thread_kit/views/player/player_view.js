// One display of the player. What it shows is decided here: of which episode (and beside which other
// one), at which moment, and which thread is open.

const NO_KERNEL =
  "The kernel was restarted or has ended: run the cell again to go on. What is here can be replayed.";

// What a widget shows beside tree and panes (../state_machine.js): makes of a View {element, show()}.
const PANELS = [];

class View {
  constructor(store, el) {
    this.store = store;
    this.selected = store.tracks.length - 1; // the track that the buttons and the timeline are for
    this.heads = []; // for each track: the moment that is shown, and whether it is played
    this.open = ["0"]; // the threads in the panes, one a side
    this.follow = true; // open the thread that is at work
    const isRecorded = store.tracks[0].now.phase === "over";
    this.speed = SPEEDS[isRecorded ? RECORDED : LIVE]; // frames a second
    this.asked = ""; // the phase that a button asked for
    this.problem = "";
    this.isSolved = undefined; // whether that is true no more
    this.bar = new Bar(this);
    this.tree = new Tree(this);
    this.forking = new Forking(this);
    this.switches = new Switches(this);
    this.figure = "tree"; // beside the outline: "tree", "work", or "" for none
    this.figures = [new Figure(this, 0), new Figure(this, 1)];
    this.panes = [new Pane(this, 0), new Pane(this, 1)];
    this.tabs = make("div", { class: "tk-tabs", role: "tablist", "aria-label": "episodes" });
    this.body = make("div", { class: "tk-body" });
    this.asking = new Asking(this);
    this.panels = PANELS.map((make) => make(this));
    this.element = make("div", {
      class: "tk-player",
      role: "group",
      "aria-label": "player of an episode",
      tabindex: "0",
      onkeydown: (event) => this.key(event),
    });
    keepKeys(this.element);
    const panels = this.panels.map(({ element }) => element);
    this.element.append(this.tabs, this.bar.element, ...panels, this.body);
    this.element.append(this.asking.element, this.forking.element, this.switches.element);
    el.append(this.element);
    if (store.static) {
      const beside = `.${store.static}, .jp-OutputArea-child:has(.${store.static})`;
      el.append(make("style", {}, `${beside} { display: none !important; }`));
    }
    this.update();
  }

  close() {
    clearInterval(this.timer);
  }

  // What is shown

  track(side = this.shown.length - 1) {
    return this.store.tracks[this.shown[side]];
  }

  // A fork is shown beside what it is a fork of.
  get shown() {
    const { parent } = this.store.tracks[this.selected];
    return parent === null ? [this.selected] : [parent, this.selected];
  }

  get head() {
    return this.heads[this.selected];
  }

  // A fork and its original have one timeline: the frames that they share, and then, side by side,
  // those that each has of its own. So both are shown as many tokens and events behind the fork.
  lengthOf(number) {
    const { parent, recording } = this.store.tracks[number];
    const other = parent === null ? 0 : this.store.tracks[parent].recording.length;
    return Math.max(recording.length, other);
  }

  get length() {
    return this.lengthOf(this.selected);
  }

  // How many frames of a side are shown.
  at(side = this.shown.length - 1) {
    return Math.min(this.head.at, this.track(side).recording.length);
  }

  // Is what a side shows all that there will be of it?
  isDone(side) {
    const { now, recording } = this.track(side);
    return now.phase === "over" && this.head.at >= recording.length;
  }

  get isRunning() {
    return this.head.playing || (this.isAtEnd && this.isLive);
  }

  get isAtEnd() {
    return this.head.at >= this.length;
  }

  // Does the model write just now?
  get isLive() {
    return !this.store.isDead && this.track().now.phase === "running";
  }

  // Something is new in the store.
  update() {
    this.store.tracks.forEach(({ now }, number) => {
      const length = this.lengthOf(number);
      if (!this.heads[number]) {
        this.heads[number] = { at: length, follow: true, playing: false };
        if (number && this.states) this.select(number); // a fork that was made just now
      }
      const head = this.heads[number];
      if (!head.follow) return;
      const isSlow = this.speed < Infinity && number === this.selected && now.phase === "running";
      if (!isSlow) head.at = length;
      else if (head.at < length) this.play(head);
    });
    if (this.problem && this.isSolved?.()) this.problem = "";
    const { now } = this.track();
    // A pause may have come before what "resume" would have shown.
    const isHeard = now.phase === this.asked || (this.asked === "running" && now !== this.askedAt);
    if (isHeard || now.phase === "over" || this.store.isDead) this.asked = "";
    this.show();
  }

  // What had the focus may go, with a row that is not there yet at an earlier moment: the keys
  // still mean this player.
  show() {
    const had = this.element.contains(document.activeElement);
    this.fill();
    if (had && !this.element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
  }

  fill() {
    this.states = this.shown.map((number, side) => this.store.tracks[number].recording.at(this.at(side)));
    if (this.follow) this.turn();
    const main = this.states.at(-1).threads;
    if (!this.open.some((id, side) => id !== null && this.states[side]?.threads[id]))
      this.open = this.states.map(() => "0");
    if (this.open.length !== this.states.length)
      this.open = this.partners(this.open.at(-1) in main ? this.open.at(-1) : "0");
    const panes = this.panes.slice(0, this.states.length);
    const figures = this.figure ? this.figures.slice(0, this.states.length) : [];
    const parts = [this.tree, ...figures, ...panes];
    if (this.body.childElementCount !== parts.length || this.body.lastChild !== panes.at(-1).element) {
      const atEnd = panes.filter((pane) => pane.followsEnd());
      this.body.classList.toggle("tk-compare", panes.length > 1);
      this.body.classList.toggle("tk-with-figure", figures.length > 0);
      setChildren(this.body, parts.map(({ element }) => element));
      for (const pane of atEnd) pane.toEnd();
    }
    this.tree.show(this.states);
    for (const part of [...figures, ...panes, ...this.panels]) part.show();
    this.bar.show();
    this.asking.show();
    this.showTabs();
  }

  // Open the thread that is at work; of several that write at the same time, the one that is open.
  turn() {
    const { threads } = this.states.at(-1);
    const { now, recording } = this.track();
    const current = this.open.at(-1);
    if (this.open.length === this.states.length && threads[current]?.status === "generating") return;
    const frame = recording.frames[this.at() - 1];
    const isOver = now.phase === "over" && this.isAtEnd;
    const id = isOver ? "0" : String(frame?.thread ?? "0");
    if (threads[id] && (id !== current || this.open.length !== this.states.length))
      this.open = this.partners(id);
  }

  // The threads of the row in which a thread stands; the main ones belong together from the start.
  partners(id, side = this.states.length - 1) {
    if (this.states.length === 1) return [id];
    const row = rowsOf(this.states).find(({ ids }) => ids[side] === id);
    return row ? row.ids : this.states.map((_, k) => (k === side || id === "0" ? id : null));
  }

  // What a person chose: from now on nothing else is opened.
  pick({ ids }) {
    this.follow = false;
    this.open = ids;
    this.show();
  }

  pickThread(side, id) {
    this.pick({ ids: this.partners(id, side) });
  }

  point(id) {
    this.tree.mark(id === null ? [] : [id]);
    const row = id === null ? null : this.tree.rows.find((row) => row.ids.at(-1) === id);
    const ids = row?.ids ?? [];
    this.figures.forEach((figure, side) => figure.mark(ids[side] ?? null));
    for (const bar of this.body.querySelectorAll(".tk-work [data-child]"))
      bar.classList.toggle("tk-pointed", bar.dataset.child === id);
  }

  // To the moment at which a thread was spawned.
  seekThread(side, id) {
    const { frames } = this.track(side).recording;
    const place = frames.findIndex(({ kind, thread }) => kind === "spawned" && String(thread) === id);
    if (place >= 0) this.seek(place + 1);
    this.pickThread(side, id);
  }

  // The parent, with what passed between it and its child.
  openEdge(side, parent, child) {
    this.panes[side].unfold(`edge ${child}`);
    this.pickThread(side, parent);
  }

  showFigure(name) {
    this.figure = name;
    this.show();
  }

  select(number) {
    this.halt();
    this.selected = number;
    this.asked = "";
    this.problem = "";
    this.open = [this.open.at(-1)];
  }

  showTabs() {
    const { tracks } = this.store;
    this.tabs.hidden = tracks.length < 2;
    const names = tracks.map((track, number) => {
      if (track.parent === null) return "Original";
      const of = track.parent ? ` of fork ${track.parent}` : "";
      const { about } = track.recording;
      if (about.fork.event) return `Fork ${number}${of}, event ${about.fork.event}`;
      const changes = changesOf(tracks[track.parent].recording.about, about);
      return `Fork ${number}${of}: ${changes.join(", ") || "from the start"}`;
    });
    const shown = `${this.selected} ${names.join()}`;
    if (shown === this.named) return;
    this.named = shown;
    const choose = (number) => {
      this.select(number);
      this.show();
      this.tabs.children[number].focus(); // the tabs are new
    };
    this.tabs.replaceChildren(
      ...names.map((name, number) =>
        button(name, () => choose(number), {
          role: "tab",
          "aria-selected": number === this.selected,
        }),
      ),
    );
  }

  // Stays until a person does something else: a live moment is another one with each token. Or
  // until it is true no more, where isSolved says so.
  report(text, isSolved) {
    Object.assign(this, { problem: text, isSolved });
    this.show();
  }

  // Moving

  seek(at) {
    this.halt();
    this.head.at = at;
    this.head.follow = this.isAtEnd;
    this.problem = "";
    this.show();
  }

  halt() {
    this.head.playing = false;
    clearInterval(this.timer);
  }

  step(unit, back = false) {
    const steps = this.shown.map((n) => this.store.tracks[n].recording.step(this.head.at, unit, back));
    const there = steps.filter((to) => to !== null);
    if (there.length) return this.seek(back ? Math.max(...there) : Math.min(...there));
    this.seek(back ? 0 : this.length);
    if (!back && this.track().now.phase !== "over") this.send({ do: "step", unit });
  }

  run() {
    const { now } = this.track();
    this.problem = "";
    if (this.isRunning) {
      this.halt();
      if (now.phase === "running") this.ask("pause", "paused");
      return this.show();
    }
    if (this.isAtEnd && now.phase === "paused" && !this.store.isDead) this.ask("resume", "running");
    else {
      if (this.isAtEnd) this.head.at = now.phase === "over" || this.store.isDead ? 0 : this.length;
      this.play(this.head, now.phase === "paused");
    }
    this.show();
  }

  // resumes: whether a session that is paused goes on where the replay ends.
  play(head, resumes = false) {
    Object.assign(head, { follow: false, playing: true, resumes });
    clearInterval(this.timer);
    let [last, due] = [performance.now(), 0];
    this.timer = setInterval(() => {
      const time = performance.now();
      // What is recorded has no pace of its own: one that can be followed.
      const speed = this.speed < Infinity ? this.speed : SPEEDS[RECORDED];
      due += speed * ((time - last) / 1000);
      last = time;
      if (due < 1) return;
      head.at = Math.min(head.at + Math.floor(due), this.length);
      due %= 1;
      if (this.isAtEnd) this.arrive(head);
      this.show();
    }, 30);
  }

  // The end of what there is; a session that a person found paused, and ran, goes on.
  arrive(head) {
    this.halt();
    head.follow = true;
    const isPaused = !this.store.isDead && this.track().now.phase === "paused";
    if (isPaused && head.resumes) this.ask("resume", "running");
  }

  stop() {
    this.ask("stop", "over");
    this.show();
  }

  ask(verb, phase) {
    if (this.send({ do: verb })) [this.asked, this.askedAt] = [phase, this.track().now];
  }

  fork({ track, at, changes }) {
    this.send({ do: "fork", track, at, changes });
  }

  send(message) {
    const sent = this.store.send({ track: this.selected, ...message });
    if (!sent) this.report(NO_KERNEL);
    return sent;
  }

  // What needs a kernel: done, or why it cannot be; a page has none, and no button for it.
  ifAlive(act) {
    if (this.store.offline) return;
    if (this.store.isDead) return this.report(NO_KERNEL);
    act();
  }

  setSpeed(speed) {
    this.speed = speed;
    if (speed === Infinity && this.isLive && this.head.playing) this.seek(this.length);
    this.update();
  }

  toggleFollow() {
    this.follow = !this.follow;
    this.show();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=range]), textarea, select")) return;
    const isButton = event.target.closest("button, summary");
    if (isButton && (event.key === " " || event.key === "Enter")) return;
    const { bar } = this;
    const faster = (by) => {
      const names = Object.keys(SPEEDS);
      const place = names.indexOf(bar.speed.value) + by;
      bar.speed.value = names[Math.max(0, Math.min(place, names.length - 1))];
      this.setSpeed(SPEEDS[bar.speed.value]);
    };
    const keys = {
      " ": () => bar.running.click(),
      t: () => this.step("token", event.shiftKey),
      e: () => this.step("event", event.shiftKey),
      d: () => this.step("thread", event.shiftKey),
      s: () => this.step("spawn", event.shiftKey),
      0: () => this.seek(0),
      9: () => this.seek(this.length),
      "+": () => faster(1),
      "-": () => faster(-1),
      f: () => this.ifAlive(() => this.forking.askHere()),
      o: () => this.toggleFollow(),
      g: () => this.showFigure(this.figure ? "" : "tree"),
      w: () => this.showFigure(this.figure === "work" ? "tree" : "work"),
      a: () => this.ifAlive(() => this.switches.toggle()),
      "?": () => bar.toggleKeys(),
      Escape: () => bar.toggleKeys(true),
    };
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(keys, name)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[name]();
  }
}
