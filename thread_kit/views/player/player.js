// The page's side of the player (player.py). No build step: player.py joins the files player_*.js
// and this one to one module. Data flows one way:
//   Film       the frames of one episode, and its state at any of them
//   Store      the films of one widget: all of them first, then numbered messages of new frames
//   View       one display of it: the Bar, the Tree, and a Pane for each thread that is open

class Store {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    this.n = -1;
    this.tracks = [];
    this.load();
    model.on("change:snapshot", () => this.load());
    model.on("msg:custom", (message) => this.take(message));
  }

  load() {
    const { n, tracks, ...more } = JSON.parse(this.model.get("snapshot"));
    if (n <= this.n) return;
    this.n = n;
    Object.assign(this, more);
    this.tracks = tracks.map(loaded);
    for (const view of this.views) view.update();
  }

  take({ n, tracks }) {
    if (n <= this.n) return;
    if (n > this.n + 1) return this.tell({ shown: this.n }); // missed one: ask for all
    this.n = n;
    for (const [number, news] of Object.entries(tracks)) {
      const track = this.tracks[number];
      if (!track) this.tracks[number] = loaded(news);
      else {
        track.film.frames.push(...news.frames);
        if (news.now) track.now = news.now;
      }
    }
    for (const view of this.views) view.update();
  }

  // False where there is nobody to hear it.
  tell(message) {
    if (this.offline) return false;
    try {
      this.model.send(message);
      return true;
    } catch {
      return false;
    }
  }
}

const loaded = ({ about, frames, now, parent }) => ({ film: new Film(about, frames), now, parent });

const widget = () => {
  let store;
  return {
    initialize({ model }) {
      store = new Store(model);
    },
    render({ el }) {
      const view = new View(store, el);
      store.views.add(view);
      store.tell({ shown: store.n });
      return () => {
        store.views.delete(view);
        view.close();
      };
    },
  };
};

export default widget;
