// The page's side of the player (widget.py). No build step: widget.py joins the files player_*.js
// and this one to one module. Data flows one way:
//   Recording  the frames of one episode, and its state at any of them
//   Store      the recordings of one widget: all of them first, then numbered messages of new frames
//   View       one display of it: the Bar, the Tree, and a Pane for each thread that is open

const PATIENCE = 5000; // milliseconds

class Store {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    this.n = -1;
    this.tracks = [];
    this.load();
    model.on("change:snapshot", () => this.load());
    model.on("msg:custom", (message) => this.receive(message));
    // The kernel was restarted: nothing that is asked here will ever be answered.
    model.on("comm_live_update", () => {
      this.isDead = true;
      for (const view of this.views) view.update();
    });
  }

  load() {
    const { n, tracks, ...more } = JSON.parse(this.model.get("snapshot"));
    this.askedAt = -Infinity;
    if (n <= this.n) return;
    this.n = n;
    Object.assign(this, more);
    if (this.offline) this.isDead = true; // nothing will ever come, whatever was under way
    this.tracks = tracks.map(makeTrack);
    for (const view of this.views) view.update();
  }

  receive({ n, tracks }) {
    if (n <= this.n) return;
    if (n > this.n + 1) {
      // It has missed one: it asks for all, once, and again where nobody answers.
      if (performance.now() - this.askedAt < PATIENCE) return;
      if (this.send({ shown: this.n })) this.askedAt = performance.now();
      return;
    }
    this.n = n;
    for (const [number, change] of Object.entries(tracks)) {
      const track = this.tracks[number];
      if (!track) this.tracks[number] = makeTrack(change);
      else {
        track.recording.frames.push(...change.frames);
        if (change.now) track.now = change.now;
      }
    }
    for (const view of this.views) view.update();
  }

  // False where there is nobody to hear it.
  send(message) {
    if (this.offline || this.isDead) return false;
    try {
      this.model.send(message);
      return true;
    } catch {
      return false;
    }
  }
}

const makeTrack = ({ about, frames, now, parent }) => ({ recording: new Recording(about, frames), now, parent });

const widget = () => {
  let store;
  return {
    initialize({ model }) {
      store = new Store(model);
    },
    render({ el }) {
      const view = new View(store, el);
      store.views.add(view);
      store.send({ shown: store.n });
      return () => {
        store.views.delete(view);
        view.close();
      };
    },
  };
};

export default widget;
