// What the pages do beyond plain HTML: local times, keys, and whether the page is still connected.
"use strict";
(() => {
  const local = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        time.title = time.textContent;
        time.textContent = at.toLocaleString();
      }
    }
  };
  const isTyping = (target) => target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select") !== null;
  const cards = () => [...document.querySelectorAll("#questions > article, #transcript > article, .rows > div")];

  const move = (step) => {
    const all = cards();
    const here = all.findIndex((card) => card.contains(document.activeElement));
    const next = all[Math.min(Math.max(here + step, 0), all.length - 1)];
    if (next) {
      const first = next.hasAttribute("tabindex") ? next : next.querySelector("a");
      first.focus();
      next.scrollIntoView({ block: "nearest" });
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches(".say textarea")) {
      event.target.form.requestSubmit();
    } else if (!isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      if (event.key === "j") move(1);
      if (event.key === "k") move(-1);
    }
  });

  document.addEventListener("DOMContentLoaded", () => local(document));
  document.addEventListener("htmx:oobAfterSwap", (event) => local(event.detail.target ?? document));
  document.addEventListener("htmx:sseMessage", () => {
    local(document);
    const end = document.getElementById("end");
    const isNearEnd = window.innerHeight + window.scrollY > document.body.scrollHeight - 600;
    if (end && isNearEnd && !isTyping(document.activeElement ?? document.body)) end.scrollIntoView({ block: "end" });
  });
  const connection = (text) => {
    const shown = document.getElementById("connection");
    if (shown && shown.textContent !== text) shown.textContent = text;
  };
  document.addEventListener("htmx:sseOpen", () => connection("live"));
  document.addEventListener("htmx:sseError", () => connection("not connected"));
})();
