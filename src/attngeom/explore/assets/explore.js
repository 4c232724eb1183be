// The page asks the engine: it sends the values of the controls and shows the answer. Nothing is computed here.
"use strict";
(() => {
  const view = document.querySelector("[data-view]");
  addEventListener("resize", markCut);
  markCut();
  if (!view) return;
  const name = view.dataset.view;
  const form = document.getElementById("controls");
  const answer = document.getElementById("answer");
  const place = () => document.getElementById("job"); // each answer brings a new one
  const STOPPED = "<p class='refusal' role='alert'>The server was stopped.</p><section id='job'></section>";
  let asking = null;
  let running = null;
  let works = 0;

  const query = () => {
    const texts = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    // An empty query means the defaults, which may have boxes that are ticked.
    if (![...texts].length) texts.append("v", "1");
    return texts;
  };
  // Addresses are relative: the token is in that of the page.
  const post = (path, body = "", more = {}) => fetch(path, { method: "POST", body, ...more });

  // A table or a map that is wider than the page says so.
  function markCut() {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("cut", box.scrollWidth > box.clientWidth + 1);
    }
  }

  // A control may rest while another has no use for it; its value stays.
  function hideUnused() {
    for (const element of form.querySelectorAll("[data-only]")) {
      const [key, words] = element.dataset.only.split("=");
      element.hidden = !words.split(" ").includes(form.elements[key].value);
    }
  }

  async function refresh() {
    hideUnused();
    stopWork();
    asking?.abort(); // a later change asks again
    const mine = (asking = new AbortController());
    const texts = query();
    answer.setAttribute("aria-busy", "true");
    let shown = STOPPED;
    try {
      shown = await (await post(`${name}/answer`, texts, { signal: mine.signal })).text();
    } catch {
      if (mine.signal.aborted) return;
    }
    const held = answer.contains(document.activeElement) ? document.activeElement.id : "";
    answer.innerHTML = shown;
    answer.removeAttribute("aria-busy");
    if (held) document.getElementById(held)?.focus();
    history.replaceState(null, "", `?${texts}`);
    markCut();
    window.attngeomTurn?.(answer);
    const auto = answer.querySelector("[data-job][data-auto]");
    if (auto) startWork(auto.dataset.job);
  }

  function set(texts) {
    for (const [key, value] of Object.entries(texts)) {
      for (const element of form.querySelectorAll(`[name="${key}"]`)) {
        if (element.type === "checkbox") element.checked = value === "1";
        else element.value = value;
        if (element.type === "range") echo(element);
      }
    }
    return refresh();
  }

  function echo(element) {
    element.parentElement.querySelector("output").textContent = element.value;
  }

  async function act(action) {
    const reply = await post(`${name}/action/${encodeURIComponent(action)}`, query());
    if (reply.ok) await set(await reply.json());
    else place().innerHTML = await reply.text();
  }

  let uploads = 0;
  async function upload(field, file) {
    const mine = ++uploads; // of two files the later one is shown, whichever arrives first
    place()?.replaceChildren();
    const reply = await post(`upload?name=${encodeURIComponent(file.name)}`, file).catch(() => null);
    const told = reply && (reply.ok ? await reply.json() : await reply.text());
    if (reply?.ok) form.querySelector(`select[name="${field}"]`).append(new Option(told.name, told.key));
    if (mine !== uploads) return;
    if (!reply) place().textContent = "The file could not be sent: it is too large, or the server was stopped.";
    else if (!reply.ok) place().innerHTML = told;
    else await set({ [field]: told.key });
  }

  async function startWork(job) {
    stopWork();
    const mine = works;
    const work = place();
    const started = await post(`${name}/job/${job}`, query());
    const told = await (started.ok ? started.json() : started.text());
    if (mine !== works) { // a later change has stopped it before it had a key
      if (started.ok) post(`job/${told.key}`);
      return;
    }
    if (!started.ok) {
      work.innerHTML = told;
      return;
    }
    const { key } = told;
    running = key;
    const [words, bar, cancel] = ["p", "progress", "button"].map((tag) => document.createElement(tag));
    bar.setAttribute("aria-label", "progress");
    cancel.type = "button";
    cancel.textContent = "Cancel";
    cancel.addEventListener("click", () => post(`job/${key}`));
    work.replaceChildren(words, bar, cancel);
    while (running === key) {
      const reply = await fetch(`job/${key}`).catch(() => null);
      if (!reply?.ok || running !== key) break;
      const told = await reply.json();
      if (told.stage !== "running") {
        running = null;
        work.innerHTML = told.html;
        work.dataset.stage = told.stage;
        markCut();
        break;
      }
      const counted = told.total > 0;
      bar.max = counted ? told.total : told.budget;
      bar.value = counted ? told.done : told.seconds;
      const part = counted ? `${told.done} of ${told.total}, ` : "";
      words.textContent = `${part}${told.seconds.toFixed(1)} s of at most ${told.budget} s`;
      await new Promise((done) => setTimeout(done, 200));
    }
  }

  function stopWork() {
    works++;
    if (running) post(`job/${running}`, "", { keepalive: true });
    running = null;
    delete place()?.dataset.stage;
    place()?.replaceChildren();
  }

  function copyLine(button) {
    navigator.clipboard?.writeText(button.dataset.copy).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1200);
    }, () => getSelection().selectAllChildren(button.previousElementSibling));
  }

  let later = 0;
  form.addEventListener("input", (event) => {
    if (event.target.type === "file") return;
    if (event.target.type === "range") echo(event.target);
    clearTimeout(later);
    later = setTimeout(refresh, event.target.type === "text" || event.target.tagName === "TEXTAREA" ? 60 : 0);
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.formAction.includes("/download/")) return; // the browser takes the file
    event.preventDefault();
    refresh();
  });
  form.addEventListener("change", (event) => {
    const field = event.target.dataset.upload;
    if (field && event.target.files.length) upload(field, event.target.files[0]);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.copy) copyLine(button);
    if (button?.dataset.action) act(button.dataset.action);
    if (button?.dataset.job) startWork(button.dataset.job);
    if (button?.dataset.set) set(Object.fromEntries(new URLSearchParams(button.dataset.set)));
  });
  document.addEventListener("attngeom-set", (event) => set(event.detail));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const box = event.target.closest("[data-drop]") || form.querySelector("[data-drop]");
    if (box && event.dataTransfer.files.length) upload(box.dataset.drop, event.dataTransfer.files[0]);
  });
  addEventListener("pagehide", stopWork);
  if (answer.hasAttribute("aria-busy")) refresh();
  else hideUnused();
})();
