// An episode as frames (frames.py), and its state at any of them. A state that was handed out is never
// changed: what a change does not touch is shared with the state before, so that keeping states costs
// little, and whoever shows one sees by identity what is new in it.

// The state behind a frame. `owned` holds the objects that were made for it and that nobody else has
// seen: they are changed in place.
export function fold(state, frame, owned = new Set()) {
  const own = (place) => {
    if (owned.has(place)) return place;
    const copy = Array.isArray(place) ? [...place] : { ...place };
    owned.add(copy);
    return copy;
  };
  const next = own(state);
  const inner = (path) =>
    path.reduce((place, key) => (place[key] = own(place[key])), next);
  if ("token" in frame) inner(["threads", frame.thread]).writing += frame.token;
  for (const [verb, path, value] of frame.changes ?? []) {
    if (verb === "push") inner(path).push(...value);
    else if (verb === "put") {
      const pairs = inner(path);
      for (const pair of value) {
        const at = pairs.findIndex(([name]) => name === pair[0]);
        pairs[at < 0 ? pairs.length : at] = pair;
      }
    }
    else if (verb === "each") {
      const all = inner(path.slice(0, -1));
      for (const id in all) (all[id] = own(all[id]))[path.at(-1)] = value;
    }
    else inner(path.slice(0, -1))[path.at(-1)] = value;
  }
  return next;
}

// A token without text is no step: another one has brought its text (engines/human.py), or will.
const STEPS = {
  token: (frame) => frame.token !== "",
  event: (frame) => "kind" in frame,
  thread: (frame) => frame.kind === "spawned" || frame.kind === "ended",
  spawn: (frame) => frame.kind === "spawned",
};

const KEPT = 64; // frames between two states that are kept

export class Recording {
  constructor(about, frames) {
    this.about = about;
    this.frames = frames;
    this.kept = [about.start];
    this.last = { n: 0, state: about.start };
  }

  get length() {
    return this.frames.length;
  }

  // The state behind the first n frames.
  at(n) {
    let { n: from, state } = this.last;
    const near = Math.min(Math.floor(n / KEPT), this.kept.length - 1);
    if (from > n || from < near * KEPT) [from, state] = [near * KEPT, this.kept[near]];
    let owned = new Set();
    for (; from < n; from++) {
      if (from % KEPT === 0) {
        this.kept[from / KEPT] ??= state;
        owned = new Set();
      }
      state = fold(state, this.frames[from], owned);
    }
    if (n % KEPT === 0) this.kept[n / KEPT] ??= state;
    this.last = { n, state };
    return state;
  }

  // Where a step leads, from behind n frames; null where there is no such frame.
  step(n, unit, back = false) {
    const ends = STEPS[unit];
    if (back) {
      for (let to = Math.min(n - 1, this.length); to > 0; to--) if (ends(this.frames[to - 1])) return to;
      return n > 0 ? 0 : null;
    }
    for (let to = n + 1; to <= this.length; to++) if (ends(this.frames[to - 1])) return to;
    return null;
  }

  // Where to fork so that all of the first n frames stay: an event, and tokens of its call. Null in
  // a call that is not over.
  fork(n) {
    const frame = this.frames[n - 1];
    if (!frame) return null;
    if ("event" in frame) return frame.kind === "closed" ? null : { at: frame.event + 1 };
    const isCall = (other) => other.kind === "generatedspan" && other.thread === frame.thread;
    const call = this.frames.slice(n).find(isCall);
    if (!call) return null;
    const [, , [span]] = call.changes.find(([verb, path]) => verb === "push" && path.at(-1) === "sequence");
    if (!span.lengths.length) return { at: call.event + 1 }; // nobody knows what each token wrote
    const end = this.frames.indexOf(call);
    const begin = this.frames.slice(0, end).findLastIndex(isCall) + 1;
    const tokens = (frames) => frames.filter((other) => "token" in other && other.thread === frame.thread);
    const written = tokens(this.frames.slice(begin, n));
    const left = tokens(this.frames.slice(n, end));
    let token = written.length;
    // Not each token has a frame: some were written before this recording began, and the last one
    // can have been spelled anew. So it is counted in characters, from the end.
    if (token + left.length !== span.lengths.length) {
      const count = (texts) => texts.reduce((sum, text) => sum + Array.from(text).length, 0);
      let room = span.lengths.reduce((a, b) => a + b, 0) - count(left.map((other) => other.token));
      token = span.lengths.findIndex((length) => (room -= length) < 0);
      if (token < 0) token = span.lengths.length;
    }
    return { at: call.event, token, span };
  }

  // The first event behind n frames that is this thread's own, or spawns a child of it.
  nextOf(n, thread) {
    const state = this.at(this.length);
    const isIts = (frame) =>
      "event" in frame &&
      (frame.thread === thread ||
        (frame.kind === "spawned" && state.threads[frame.thread].parent === thread));
    return this.frames.slice(n).find(isIts)?.event ?? null;
  }
}
