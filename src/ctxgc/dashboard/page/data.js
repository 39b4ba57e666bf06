// Where the page gets what it shows: from the server that it came from, or from the file that it is in.

/** An answer of the server that says what is wrong and what to do. */
export class Refusal extends Error {
  constructor({ message, hint, code }) {
    super(message);
    this.hint = hint ?? "";
    this.code = code ?? "";
  }
}

export class Server {
  constructor() {
    this.csrf = "";
  }

  async sessions() {
    const found = await this.get("api/sessions");
    this.csrf = found.csrf ?? "";
    return found;
  }

  session(id) { return this.get(`api/sessions/${encodeURIComponent(id)}`); }

  timeline(id) { return this.get(`api/sessions/${encodeURIComponent(id)}/timeline`); }

  segment(id, segment) {
    return this.get(`api/sessions/${encodeURIComponent(id)}/segments/${encodeURIComponent(segment)}`);
  }

  plan(id, target) {
    return this.get(`api/sessions/${encodeURIComponent(id)}/plan${target ? `?target=${target}` : ""}`);
  }

  /** Do something to a session; the answer says what was done and how to undo it. */
  act(id, action, body) {
    return this.get(`api/sessions/${encodeURIComponent(id)}/actions/${action}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-ctxgc-csrf": this.csrf },
      body: JSON.stringify(body),
    });
  }

  async get(path, options = {}) {
    const answer = await fetch(path, options).catch(() => {
      throw new Refusal({ message: "The server does not answer.", hint: "Is ctxgc still running?" });
    });
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok || found.error) {
      throw new Refusal(found.error ?? { message: `The server answered ${answer.status}.` });
    }
    return found;
  }

  /** Call `onchange({id, requests})` whenever a session changes, and `onstate(isConnected)`. */
  listen(onchange, onstate) {
    const stream = new EventSource("api/events");
    stream.addEventListener("session", (event) => onchange(JSON.parse(event.data)));
    stream.addEventListener("open", () => onstate(true));
    stream.addEventListener("error", () => onstate(false));
  }
}
