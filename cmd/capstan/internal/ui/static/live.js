// Keeps the page up to date: while it is visible, it is read again every few seconds, and its parts that look different
// now are replaced. It stores nothing, and without it the page works, but for updates and copying.
"use strict";

(() => {
  const interval = 5000; // in milliseconds
  const connection = document.getElementById("connection");

  let loading = false;
  let timer = 0;

  document.documentElement.classList.add("script");

  // warn shows why the page is outdated, with the time of its state.
  function warn(text) {
    const message = text + " You see the state of " + document.querySelector("#as-of time").textContent + ".";
    if (connection.textContent !== message) connection.textContent = message;
    connection.hidden = false;
  }

  // load reads the page again.
  function load() {
    if (loading) return;

    loading = true;
    clearTimeout(timer);

    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document"; // scripts in it do not run
    request.timeout = 30000;
    request.onloadend = () => {
      loading = false;

      if (request.status === 200 && request.response) {
        connection.hidden = true;
        update(request.response);
      } else if (request.status === 404) {
        warn("This provider does not exist any more.");
      } else if (request.status >= 500) {
        warn("The cluster cannot be read, trying again.");
      } else {
        warn("Connection lost, trying again.");
      }

      wait();
    };
    request.send();
  }

  // wait loads the page after the interval, unless it is hidden then.
  function wait() {
    timer = setTimeout(() => {
      if (!document.hidden) load();
    }, interval);
  }

  // update replaces what differs from the next state of the page. The focus stays.
  function update(next) {
    const focused = document.activeElement;
    const path = focused && focused.dataset ? [focused.id, focused.getAttribute("href"), focused.dataset.copy] : [];

    for (const part of document.querySelectorAll("[data-live], #as-of")) {
      const other = next.getElementById(part.id);
      if (other) replace(part, other);
    }

    if (focused && !focused.isConnected) restoreFocus(path);
  }

  function replace(part, next) {
    if (part.isEqualNode(next)) return;

    if (part.hasAttribute("data-list") && next.hasAttribute("data-list")) {
      replaceItems(part, next);
    } else {
      part.replaceWith(document.importNode(next, true));
    }
  }

  // replaceItems makes the children of a list those of the next one. It keeps those that are equal.
  function replaceItems(list, next) {
    let at = list.firstElementChild;

    for (const item of next.children) {
      let node = item.id ? document.getElementById(item.id) : null;

      if (node && !node.isEqualNode(item)) {
        if (node.hasAttribute("data-list")) {
          replaceItems(node, item);
        } else {
          const fresh = document.importNode(item, true);
          if (node === at) at = fresh;
          node.replaceWith(fresh);
          node = fresh;
        }
      }

      node = node || document.importNode(item, true);

      if (node === at) {
        at = at.nextElementSibling;
      } else {
        list.insertBefore(node, at);
      }
    }

    while (at) {
      const rest = at.nextElementSibling;
      at.remove();
      at = rest;
    }
  }

  function restoreFocus([id, href, copy]) {
    for (const element of document.querySelectorAll("a, button, [tabindex]")) {
      const same = id ? element.id === id : element.getAttribute("href") === href && element.dataset.copy === copy;
      if (same) {
        element.focus({ preventScroll: true });
        return;
      }
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;

    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }

    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // Pages with an error message do not update.
  if (document.querySelector("[data-live]")) {
    addEventListener("visibilitychange", () => { if (!document.hidden) load(); });
    // A page that comes back from the browser's cache is old.
    addEventListener("pageshow", (event) => { if (event.persisted) load(); });
    wait();
  }
})();
