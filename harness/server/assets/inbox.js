// What the inbox adds to its pages: it folds what is long, shows what changed,
// counts down and listens to keys. The pages work without it.
'use strict';

// A card that has just appeared or changed takes no answer for this long: a
// click that was meant for what stood there before must not hit it.
const DEAD_MS = 600;

const main = document.getElementById('main');
const list = document.getElementById('cards');
const alone = list.dataset.alone === 'yes';
const state = document.getElementById('state');
const news = document.getElementById('news');
const skew = Number(main.dataset.now) - Date.now();

const cards = () => [...list.querySelectorAll('article.card')];
const waiting = () => cards().filter(card => card.classList.contains('waits'));
const byId = id => cards().find(card => card.id === id);

// --- one card

/** Takes its controls off for a moment. */
function rest(card) {
  const field = card.querySelector('.answer fieldset');
  if (!field) return;
  field.disabled = true;
  card.restsUntil = performance.now() + DEAD_MS;
  setTimeout(() => {
    if (performance.now() >= card.restsUntil - 1 && !card.sending && !expired(card)) field.disabled = false;
  }, DEAD_MS);
}

/** Folds long texts; approving waits until all of them were opened. */
function fold(card) {
  for (const value of card.querySelectorAll('[data-long]')) {
    const box = document.createElement('details');
    const head = document.createElement('summary');
    box.className = 'folded';
    head.textContent = 'Show all: ' + value.dataset.long;
    value.replaceWith(box);
    box.append(head, value);
  }
  card.unread = new Set(card.querySelectorAll('details.folded'));
  const alike = card.querySelector('details.alike');
  const shown = cards().some(one => one !== card && one.dataset.form === 'whole' && one.dataset.intent === card.dataset.intent);
  if (alike && shown) {
    // Its twin shows the same; what is folded there is opened there.
    for (const box of alike.querySelectorAll('details.folded')) card.unread.delete(box);
  } else if (alike) {
    card.unread.add(alike);
  }
  card.addEventListener('toggle', event => {
    if (event.target.open && card.unread.delete(event.target)) gate(card);
  }, true);
  gate(card);
}

function gate(card) {
  const left = card.unread.size;
  for (const button of card.querySelectorAll('[data-approves]')) button.disabled = left > 0;
  const note = card.querySelector('.fold');
  if (!note) return;
  note.hidden = left === 0;
  note.textContent = left === 0 ? '' : left === 1
    ? 'A text is folded. Open it, and then you can approve.'
    : left + ' texts are folded. Open them, and then you can approve.';
}

function expired(card) {
  return card.dataset.expires && Number(card.dataset.expires) <= Date.now() + skew;
}

function tell(card, words) {
  let note = card.querySelector(':scope > .notice');
  if (!note) {
    note = document.createElement('p');
    note.className = 'notice problem';
    note.setAttribute('role', 'alert');
    card.prepend(note);
  }
  note.textContent = words;
}

/** Sends a form of a card, and shows what came of it in its place. */
async function send(card, form, button) {
  const body = new URLSearchParams(new FormData(form, button));
  card.sending = true;
  form.querySelector('fieldset').disabled = true;
  try {
    const answer = await fetch(form.action, { method: 'POST', body, headers: { accept: 'text/html' } });
    const page = parse(await answer.text());
    const fresh = page.getElementById(card.id);
    if (fresh) replace(card, fresh);
    else tell(card, page.querySelector('.problem')?.textContent.trim() || 'The server did not answer as expected (' + answer.status + ').');
  } catch {
    tell(card, 'The server can’t be reached. Nothing was decided as far as is known here; try again.');
  }
  card.sending = false;
  if (card.isConnected) rest(card);
  refresh();
}

function begin(card) {
  fold(card);
  rest(card);
}

const parse = text => new DOMParser().parseFromString(text, 'text/html');

/** Puts a newer state of a card where it is. It does not move. */
function replace(card, fresh) {
  const next = document.importNode(fresh, true);
  const had = card.contains(document.activeElement);
  const words = card.querySelector('[name=words]')?.value;
  const box = next.querySelector('[name=words]');
  if (box && words) box.value = words;
  card.replaceWith(next);
  begin(next);
  if (had) next.focus({ preventScroll: true });
  return next;
}

// --- all of them

let running = false;
let again = false;

/**
 * Puts a new card last: nothing moves. Where others wait for the same thing, it
 * stands in a group that says so, and leads to the first of them.
 */
function append(card) {
  const same = one => one.dataset.intent === card.dataset.intent;
  const twin = card.dataset.intent && waiting().find(same);
  if (!twin) { list.append(card); return; }
  let group = list.lastElementChild;
  if (!group.matches('.group') || !same(group.querySelector('article.card'))) {
    group = document.createElement('section');
    group.className = 'group';
    group.setAttribute('aria-label', 'The same thing, asked more than once');
    const words = document.createElement('p');
    const link = document.createElement('a');
    words.className = 'same';
    link.href = '#' + twin.id;
    link.textContent = 'The first of them stands above.';
    words.append(document.createElement('span'), ' ', link);
    group.append(words);
    list.append(group);
  }
  group.append(card);
}

/** How many wait for the same thing, in each group. */
function tally() {
  for (const group of list.querySelectorAll('.group')) {
    const intent = group.querySelector('article.card')?.dataset.intent;
    const left = waiting().filter(card => card.dataset.intent === intent).length;
    const place = group.querySelector('.same > span');
    const words = left > 1 ? left + ' wait for the same thing. An answer counts for one alone.'
      : left + ' of them waits.';
    if (place && place.textContent !== words) place.textContent = words;
  }
}

/** Fetches what waits now. New cards come last; what waits no more stays. */
async function refresh() {
  if (running) { again = true; return; }
  running = true;
  do {
    again = false;
    try {
      if (alone) await look(cards()[0]);
      else await patch();
      say('');
    } catch {
      say('Not connected: what is shown may be old.');
    }
  } while (again);
  running = false;
}

function say(words) {
  if (state && state.textContent !== words) state.textContent = words;
}

async function page(url) {
  const answer = await fetch(url, { headers: { accept: 'text/html' } });
  if (new URL(answer.url).pathname === '/login') {
    location.assign('/login');
    throw new Error('logged out');
  }
  return answer;
}

async function patch() {
  const answer = await page('/');
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = [...parse(await answer.text()).querySelectorAll('#cards article.card')];
  const there = new Set(fresh.map(card => card.id));
  let added = 0;
  for (const card of fresh) {
    const old = byId(card.id);
    if (!old) {
      const next = document.importNode(card, true);
      append(next);
      begin(next);
      added += 1;
    } else if (old.dataset.version !== card.dataset.version && !old.sending) {
      replace(old, card);
    }
  }
  for (const card of waiting()) {
    if (!there.has(card.id) && !card.sending) await retire(card);
  }
  count(added);
}

/** A card that waits no more stays where it is, and says what became of it. */
async function retire(card) {
  card.querySelector('.answer')?.querySelector('fieldset').setAttribute('disabled', '');
  await look(card);
}

async function look(card) {
  if (!card) return;
  const answer = await page(card.dataset.url);
  const fresh = parse(await answer.text()).getElementById(card.id);
  if (fresh && fresh.dataset.version !== card.dataset.version) {
    replace(card, fresh);
  } else if (!fresh) {
    card.querySelector('.answer')?.remove();
    card.classList.replace('waits', 'over');
  }
}

function count(added) {
  const open = waiting().length;
  tally();
  document.title = (open ? '(' + open + ') ' : '') + 'Inbox · Glovebox';
  document.getElementById('empty').hidden = cards().length > 0;
  document.getElementById('tidy').hidden = cards().length === open;
  document.querySelector('.keys').hidden = cards().length === 0;
  if (added > 0) {
    const link = document.createElement('a');
    const last = cards().at(-added);
    link.href = '#' + last.id;
    link.textContent = added === 1 ? 'One more waits, below' : added + ' more wait, below';
    link.addEventListener('click', () => { news.hidden = true; last.focus(); });
    news.replaceChildren(link);
    news.hidden = false;
  }
}

// --- time

const SPANS = [[86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];

function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [size, name] = SPANS.find(([size]) => seconds >= size) ?? SPANS[3];
  const n = Math.floor(seconds / size);
  return n + ' ' + name + (n === 1 ? '' : 's');
}

function tick() {
  for (const card of waiting()) {
    if (!card.dataset.expires) continue;
    const place = card.querySelector('.expires');
    if (!place) continue;
    let left = place.querySelector('.left');
    if (!left) {
      left = document.createElement('span');
      left.className = 'left';
      place.append(' ', left);
    }
    const ms = Number(card.dataset.expires) - (Date.now() + skew);
    const words = ms > 0 ? '(in ' + span(ms) + ')' : '(now)';
    if (left.textContent !== words) left.textContent = words;
    if (ms <= 0) card.querySelector('.answer fieldset')?.setAttribute('disabled', '');
  }
}

// --- keys: they act on the card that has the focus, and on no other

function press(card, choice) {
  const button = card.querySelector('.answer button[name=offer][value="' + choice + '"]');
  // A disabled button takes no click: at rest, folded and expired stay so.
  if (button) button.click();
}

/** What stays done is decided by hand: the key leads there, and no further. */
function lead(card) {
  const to = card.querySelector('.answer [name=passphrase]') || card.querySelector('.answer button[name=offer][value=once]');
  for (let box = to?.closest('details'); box; box = box.parentElement.closest('details')) box.open = true;
  to?.focus();
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const at = document.activeElement;
  if (at && at.matches('input, textarea, select, button, summary')) {
    // Out of a field, keys are for the card again.
    if (event.key === 'Escape') at.closest('article.card')?.focus();
    return;
  }
  const here = at?.matches('article.card') ? at : null;
  if (event.key === 'j' || event.key === 'k') {
    const all = waiting().length ? waiting() : cards();
    const from = all.indexOf(at?.closest('article.card'));
    const to = event.key === 'j' ? from + 1 : from < 0 ? all.length - 1 : from - 1;
    all[Math.min(Math.max(to, 0), all.length - 1)]?.focus();
  } else if (here && event.key === 'a') {
    if (here.dataset.final === 'yes') lead(here);
    else press(here, 'once');
  } else if (here && event.key === 'd') {
    press(here, 'decline');
  } else {
    return;
  }
  event.preventDefault();
});

list.addEventListener('submit', event => {
  const card = event.target.closest('article.card');
  if (!card) return;
  event.preventDefault();
  // Without a button that was pressed there is no answer.
  if (event.submitter && !card.sending) send(card, event.target, event.submitter);
});

document.getElementById('tidy')?.addEventListener('click', () => {
  for (const card of cards()) {
    if (card.classList.contains('over')) card.remove();
    else rest(card);
  }
  for (const group of list.querySelectorAll('.group')) {
    if (!group.querySelector('article')) group.remove();
  }
  count(0);
});

cards().forEach(begin);
if (!alone) count(0);
tick();
setInterval(tick, 1000);
const stream = new EventSource('/inbox/events');
stream.addEventListener('changed', refresh);
stream.addEventListener('error', () => {
  say('Not connected: what is shown may be old.');
  // It was not only cut: whoever is logged out is led to where one logs in.
  if (stream.readyState === EventSource.CLOSED) refresh();
});
