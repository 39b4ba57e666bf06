// The dashboard: which page is shown, and what happens when a session changes.

import { Server } from "./data.js";
import { el, say } from "./dom.js";
import { SessionPage } from "./session.js";
import { SessionsPage } from "./sessions.js";

const PAUSE = 400; // milliseconds in which changes are gathered

class App {
  constructor() {
    this.server = new Server();
    this.main = document.getElementById("main");
    this.page = null;
    this.id = null;
    this.turn = 0;
    addEventListener("hashchange", () => this.open());
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.server.listen((change) => this.changed(change), (isConnected) => {
      document.getElementById("connection").textContent = isConnected ? "live" : "not connected: trying again …";
    });
  }

  /** Show what the address names: the list, or one session at a request. */
  async open() {
    const [path, query] = location.hash.slice(1).split("?");
    const words = new URLSearchParams(query ?? "");
    const id = path.startsWith("/s/") ? decodeURIComponent(path.slice(3)) : null;
    const turn = (this.turn += 1);
    try {
      const found = await this.server.sessions();
      const page = id === null ? new SessionsPage(found) : await this.session(id, words);
      if (turn === this.turn) this.put(page, id);
      else page.close();
    } catch (error) {
      if (turn === this.turn) this.put({ element: wrong(error), close() {} }, id);
    }
  }

  async session(id, words) {
    const [about, timeline] = await Promise.all([this.server.session(id), this.server.timeline(id)]);
    const place = timeline.requests.findIndex(({ n }) => String(n) === words.get("at"));
    return new SessionPage(this.server, id, {
      about, timeline, place: place < 0 ? null : place, segment: words.get("segment"),
    });
  }

  put(page, id) {
    const isOther = this.page !== null;
    this.page?.close();
    this.page = page;
    this.id = id;
    if (id === null) document.title = "Sessions · ctxgc";
    this.main.replaceChildren(page.element);
    if (isOther) this.main.focus();
    say(document.title);
  }

  changed({ id }) {
    if (this.id !== null && this.id !== id) return;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.refresh(), PAUSE);
  }

  async refresh() {
    try {
      if (this.page instanceof SessionPage) await this.page.reload();
      else if (this.page instanceof SessionsPage) this.page.update(await this.server.sessions());
    } catch (error) {
      say(error.message);
    }
  }
}

function wrong(error) {
  return el("section", {}, el("h1", {}, "This cannot be shown"), el("p", { class: "wrong" }, error.message), el("p", {}, error.hint ?? ""));
}

new App().open();
