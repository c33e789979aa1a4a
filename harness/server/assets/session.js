// What the page of a session adds: it shows what happens as it happens.
'use strict';

const MERGE_MS = 250;

const main = document.getElementById('main');
const state = document.getElementById('state');
const session = main.dataset.session;

let timer = 0;
let running = false;
let again = false;

/** Fetches the events after the last one that is shown, and the panels. */
async function refresh() {
  if (running) { again = true; return; }
  running = true;
  do {
    again = false;
    try {
      const list = document.getElementById('timeline');
      const answer = await fetch('/sessions/' + session + '?after=' + list.dataset.last);
      if (new URL(answer.url).pathname === '/login') { location.assign('/login'); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const fresh = page.getElementById('timeline');
      list.append(...[...fresh.children].map(line => document.importNode(line, true)));
      list.dataset.last = fresh.dataset.last;
      again ||= page.getElementById('later') !== null;
      const [old, now] = [document.getElementById('panels'), page.getElementById('panels')];
      if (old.innerHTML !== now.innerHTML) {
        old.replaceChildren(...[...now.childNodes].map(node => document.importNode(node, true)));
      }
      state.textContent = 'live';
    } catch {
      state.textContent = 'not connected: what is shown may be old';
    }
  } while (again);
  running = false;
}

function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, MERGE_MS);
}

// A page that shows older events stays as it is.
if (session && !document.getElementById('later')) {
  const last = document.getElementById('timeline').dataset.last;
  const stream = new EventSource('/v1/sessions/' + session + '/events?after=' + last);
  for (const kind of ['text', 'progress', 'tool', 'state', 'approval', 'artifact', 'error', 'usage', 'gap']) {
    stream.addEventListener(kind, soon);
  }
  stream.addEventListener('open', () => { state.textContent = 'live'; });
  stream.addEventListener('error', () => {
    state.textContent = stream.readyState === EventSource.CLOSED ? 'over' : 'not connected: what is shown may be old';
  });
}
