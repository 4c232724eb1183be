// The page asks the engine: it sends the values of the controls and shows the answer. Nothing is computed here.
"use strict";
(() => {
  const view = document.querySelector("[data-view]");
  document.addEventListener("click", copyLine);
  if (!view) return;
  const name = view.dataset.view;
  const form = document.getElementById("controls");
  const answer = document.getElementById("answer");
  const place = () => document.getElementById("job"); // each answer brings a new one
  const STOPPED = "<p class='refusal' role='alert'>The server was stopped.</p><section id='job'></section>";
  const OWN = { "X-Attngeom": "1" };
  let asked = 0;
  let running = null;

  const query = () => {
    const texts = new URLSearchParams();
    for (const [key, value] of new FormData(form)) {
      if (typeof value === "string" && value !== "") texts.append(key, value);
    }
    // An empty query means the defaults, which may have boxes that are ticked.
    if (![...texts].length) texts.append("v", "1");
    return texts.toString();
  };

  // A control may rest while another has no use for it; its value stays.
  function settle() {
    for (const element of form.querySelectorAll("[data-only]")) {
      const [key, words] = element.dataset.only.split("=");
      element.hidden = !words.split(" ").includes(form.elements[key].value);
    }
  }

  async function refresh() {
    settle();
    const mine = ++asked;
    const address = query();
    stopWork();
    answer.setAttribute("aria-busy", "true");
    const reply = await fetch(`/${name}/answer?${address}`).catch(() => null);
    const shown = reply ? await reply.text() : STOPPED;
    if (mine !== asked) return; // a later change has asked again
    show(shown);
    history.replaceState(null, "", `/${name}?${address}`);
  }

  function show(shown) {
    const held = document.activeElement && answer.contains(document.activeElement) ? document.activeElement.id : "";
    answer.innerHTML = shown;
    answer.removeAttribute("aria-busy");
    if (held) document.getElementById(held)?.focus();
    window.attngeomTurn?.(answer);
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
    const output = element.parentElement.querySelector("output");
    if (output) output.textContent = element.value;
  }

  async function act(action) {
    const reply = await fetch(`/${name}/action/${encodeURIComponent(action)}?${query()}`);
    if (reply.ok) await set(await reply.json());
    else place().innerHTML = await reply.text();
  }

  async function upload(field, file) {
    place().textContent = "";
    const reply = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, {
      method: "POST", headers: OWN, body: file,
    }).catch(() => null);
    if (!reply || !reply.ok) {
      place().innerHTML = reply ? await reply.text() : "";
      if (!reply) place().textContent = "The file could not be sent: it is too large, or the server was stopped.";
      return;
    }
    const entry = await reply.json();
    const choice = form.querySelector(`select[name="${field}"]`);
    choice.append(new Option(entry.name, entry.key));
    await set({ [field]: entry.key });
  }

  async function startWork(job) {
    stopWork();
    const work = place();
    const started = await fetch(`/${name}/job/${job}?${query()}`, { method: "POST", headers: OWN, body: "" });
    if (!started.ok) {
      work.innerHTML = await started.text();
      return;
    }
    const { key } = await started.json();
    running = key;
    const bar = document.createElement("progress");
    const words = document.createElement("p");
    const cancel = document.createElement("button");
    bar.setAttribute("aria-label", "progress");
    cancel.type = "button";
    cancel.textContent = "Cancel";
    cancel.addEventListener("click", async () => {
      await fetch(`/job/${key}/cancel`, { method: "POST", headers: OWN, body: "" });
    });
    work.replaceChildren(words, bar, cancel);
    while (running === key) {
      const reply = await fetch(`/job/${key}`);
      if (!reply.ok || running !== key) break;
      const told = await reply.json();
      if (told.stage !== "running") {
        running = null;
        work.innerHTML = told.html;
        work.dataset.stage = told.stage;
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
    if (running) fetch(`/job/${running}/cancel`, { method: "POST", headers: OWN, body: "", keepalive: true });
    running = null;
    delete place().dataset.stage;
    place().replaceChildren();
  }

  function copyLine(event) {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    navigator.clipboard?.writeText(button.dataset.copy).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1200);
    }, () => {
      getSelection().selectAllChildren(button.previousElementSibling);
    });
  }

  let later = 0;
  form.addEventListener("input", (event) => {
    if (event.target.type === "file") return;
    if (event.target.type === "range") echo(event.target);
    clearTimeout(later);
    later = setTimeout(refresh, event.target.type === "text" || event.target.tagName === "TEXTAREA" ? 60 : 0);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); refresh(); });
  form.addEventListener("change", (event) => {
    const field = event.target.dataset.upload;
    if (field && event.target.files.length) upload(field, event.target.files[0]);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
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
  settle();
  window.attngeomTurn?.(answer);
})();
