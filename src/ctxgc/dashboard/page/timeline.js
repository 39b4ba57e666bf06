// The past of one session: what the window held at each request, by an index over spans of requests.

const BUCKET = 64;

export const MARKS = {
  collection: { one: "collection", many: "collections", tone: "green" },
  compaction: { one: "compaction", many: "compactions", tone: "violet" },
  cache_break: { one: "cache break", many: "cache breaks", tone: "red" },
  overflow: { one: "overflow", many: "overflows", tone: "orange" },
  recall: { one: "recall", many: "recalls", tone: "blue" },
  checkpoint: { one: "checkpoint", many: "checkpoints", tone: "grey" },
};

const SOURCE_TONES = {
  system: "grey", tools: "violet", message: "accent", call: "blue", result: "teal", thinking: "amber",
  media: "orange", summary: "green", reminder: "red",
};
const POLICY_TONES = { locked: "violet", preservable: "blue", partial: "teal", ephemeral: "amber" };
const STATUS_TONES = {
  alive: "green", pinned: "accent", superseded: "orange", copy: "amber", unreachable: "red", verbose: "violet",
};

/** By what the strip can be coloured: which class a block is of, and the tones of the classes. */
export const VIEWS = {
  source: { name: "Source", of: (block) => block.segment.source, tones: SOURCE_TONES },
  policy: { name: "Policy", of: (block) => block.segment.policy, tones: POLICY_TONES },
  liveness: { name: "Liveness", of: (block) => block.status, tones: STATUS_TONES },
};

export function toneIn(view, block) {
  return view.tones[view.of(block)] ?? "grey";
}

export class Timeline {
  constructor({ requests, segments, changes }) {
    this.requests = requests;
    this.segments = segments;
    this.byId = new Map(segments.map((segment) => [segment.id, segment]));
    this.last = requests.length - 1;
    this.most = requests.reduce((most, { tokens, limit }) => Math.max(most, tokens, limit), 1);
    this.spent = runningSum(requests);
    this.count = requests.filter(({ marks }) => !marks.includes("now")).length;
    this.visited = 0;
    this.spans = segments.flatMap((segment) => segment.spans.map((span) => ({ segment, span })));
    this.buckets = this.indexed();
    this.changes = grouped(changes);
    this.entries = grouped(segments.filter(({ spans }) => spans.length)
      .map((segment) => ({ request: segment.spans[0][0], segment })));
    this.places = new Map(requests.map(({ n }, place) => [n, place]));
    this.marks = marked(requests);
  }

  indexed() {
    const first = this.requests[0]?.n ?? 1;
    const buckets = Array.from({ length: Math.floor(this.last / BUCKET) + 1 }, () => []);
    this.spans.forEach(({ span: [from, to] }, place) => {
      const end = Math.min(buckets.length - 1, Math.floor((to - first) / BUCKET));
      for (let at = Math.max(0, Math.floor((from - first) / BUCKET)); at <= end; at += 1) {
        buckets[at].push(place);
      }
    });
    return buckets.map((places) => Int32Array.from(places));
  }

  /** Whether a segment is in the window as it is now, with all of its text. */
  isWhole({ spans }) {
    const [, to, , state] = spans.at(-1) ?? [];
    return state === "whole" && to >= this.requests[this.last]?.n;
  }

  /** The blocks of the window at a place of the slider, in the order in which the model reads them. */
  at(place) {
    const { n } = this.requests[place];
    const blocks = [];
    for (const which of this.buckets[Math.floor(place / BUCKET)]) {
      this.visited += 1;
      const { segment, span: [from, to, tokens, state, status] } = this.spans[which];
      if (from <= n && n <= to) blocks.push({ segment, tokens, state, status });
    }
    return blocks;
  }

  /** What was in the window before a place of the slider and is not in it there, the latest first. */
  goneAt(place) {
    const { n } = this.requests[place];
    const gone = this.segments.filter(({ spans }) => spans.length && spans.every(([from, to]) => n < from || to < n)
      && spans[0][0] < n);
    const last = ({ spans }) => spans.findLast(([, to]) => to < n);
    return gone.map((segment) => ({ segment, tokens: last(segment)[2], state: "gone", status: last(segment)[4], until: last(segment)[1] }))
      .sort((a, b) => b.until - a.until);
  }

  changesAt(place) {
    return this.changes.get(this.requests[place].n) ?? [];
  }

  entriesAt(place) {
    return (this.entries.get(this.requests[place].n) ?? []).map(({ segment }) => segment);
  }

  /** Everything that happened to a segment, in order. */
  changesOf(id) {
    return [...this.changes.values()].flat().filter(({ segment }) => segment === id);
  }

  /** The place of the next mark of a kind after a place (or before it), or null. */
  neighbour(kind, place, step) {
    const places = this.marks[kind];
    const found = step > 0 ? places.find((one) => one > place) : places.findLast((one) => one < place);
    return found ?? null;
  }
}

/** What a window holds by class: name, tone, tokens and count, the largest first. */
export function sums(blocks, view) {
  const found = new Map();
  for (const block of blocks) {
    const name = view.of(block);
    const sum = found.get(name) ?? { name, tone: toneIn(view, block), tokens: 0, count: 0 };
    sum.tokens += block.tokens;
    sum.count += 1;
    found.set(name, sum);
  }
  return [...found.values()].sort((a, b) => b.tokens - a.tokens);
}

function runningSum(requests) {
  let sum = null;
  return requests.map(({ cost }) => {
    if (cost !== null) sum = (sum ?? 0) + cost;
    return sum;
  });
}

function grouped(items) {
  const found = new Map();
  for (const item of items) {
    const known = found.get(item.request);
    if (known) known.push(item);
    else found.set(item.request, [item]);
  }
  return found;
}

function marked(requests) {
  const found = Object.fromEntries(Object.keys(MARKS).map((kind) => [kind, []]));
  requests.forEach(({ marks }, place) => marks.forEach((kind) => found[kind]?.push(place)));
  return found;
}
