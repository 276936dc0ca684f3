"use strict";

const form = document.querySelector("#search");
const results = document.querySelector("#results");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = new FormData(form).get("q");
  const answer = await fetch(`/search?q=${encodeURIComponent(text)}`);
  const rows = await answer.json();
  results.replaceChildren(...rows.map((row) => Object.assign(document.createElement("li"), { textContent: row.name })));
});

function showHint() {
  const hint = decodeURIComponent(location.hash.slice(1));
  document.querySelector("#hint").innerHTML = "<b>" + hint + "</b>";
}

function showCount(count) {
  document.querySelector("#count").textContent = `${count} found`;
}

window.addEventListener("hashchange", showHint);
window.addEventListener("message", (event) => {
  showCount(event.data.count);
});
