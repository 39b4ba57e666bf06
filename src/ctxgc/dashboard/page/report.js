// The time machine in a file of its own: what it shows is in the file, too.

import { TimeMachine } from "./machine.js";
import { Timeline } from "./timeline.js";

const NOTHING = { allowed: new Set() };

function startReport(place) {
  const timeline = JSON.parse(document.getElementById("time-machine-data").textContent);
  const machine = new TimeMachine(new Timeline(timeline), { load: async () => null, actions: NOTHING });
  place.replaceChildren(machine.element);
  machine.go(machine.timeline.last);
}

startReport(document.getElementById("time-machine"));
