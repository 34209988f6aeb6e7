// Sorting, pointing and copying. The page is complete without it.
"use strict";
(() => {
  const root = document.querySelector(".gramian");

  // The table sorts by the column whose button is pressed; again, the other way round.
  for (const table of root.querySelectorAll("table.sorts")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.disabled = false;
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].dataset.value;
        const numeric = head.classList.contains("number");
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => {
          const x = key(a), y = key(b);
          if (x === "" || y === "") return (x === "") - (y === "");  // what is missing, last
          const order = numeric ? x - y : x.localeCompare(y);
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  }

  // What is pointed at says its numbers, and stands out in all charts.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  root.append(tip);
  const highlight = (method) => {
    for (const each of root.querySelectorAll("[data-method]")) {
      each.classList.toggle("faded", method !== null && each.dataset.method !== method);
    }
  };
  const show = (mark, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const at = mark.getBoundingClientRect();
    const left = Math.min(
      Math.max(8, at.left + at.width / 2 - tip.offsetWidth / 2),
      document.documentElement.clientWidth - tip.offsetWidth - 8,
    );
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above < 0 ? at.bottom + 6 : above) + window.scrollY}px`;
  };
  const hide = () => {
    tip.hidden = true;
    highlight(null);
  };
  for (const mark of root.querySelectorAll(".mark")) {
    const title = mark.querySelector("title");
    const text = title.textContent;
    title.remove();  // else the browser shows it too
    const method = mark.closest("[data-method]").dataset.method;
    mark.addEventListener("pointerenter", () => { highlight(method); show(mark, text); });
    mark.addEventListener("pointerleave", hide);
  }
  for (const name of root.querySelectorAll("svg .name, tr[data-method]")) {
    const method = name.closest("[data-method]").dataset.method;
    name.addEventListener("pointerenter", () => highlight(method));
    name.addEventListener("pointerleave", hide);
  }
  window.addEventListener("scroll", hide, { passive: true });

  // Code to the clipboard; where the browser does not allow it, it is selected.
  for (const button of root.querySelectorAll("button.copy")) {
    button.hidden = false;
    const code = document.getElementById(button.dataset.copies);
    button.addEventListener("click", async () => {
      let done = "Copied";
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        getSelection().selectAllChildren(code);
        done = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
      button.textContent = done;
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
})();
