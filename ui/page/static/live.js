// Keeps the page up to date: the server reports which providers have changed, and the parts of the page that look
// different now are replaced. It stores nothing, and without it the page works, but for updates and copying.
"use strict";

(() => {
  const base = document.body.dataset.liveBase;
  const about = document.body.dataset.about;
  const connection = document.getElementById("connection");

  // The server sends something every 10 seconds.
  const silence = 25000;

  let loading = false;
  let again = false;
  let timer = 0;

  document.documentElement.classList.add("script");

  // warn shows why the page may be outdated; an empty text hides the warning.
  function warn(text) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.hidden = text === "";
  }

  function lost() {
    const asOf = document.querySelector("#as-of time");
    warn("Connection lost, trying again. You see the state of " + (asOf ? asOf.textContent : "an earlier time") + ".");
  }

  // load reads the page again. A request while another one is running is made after it.
  function load() {
    if (loading) {
      again = true;
      return;
    }

    loading = true;

    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document"; // scripts in it do not run
    request.timeout = 30000;
    request.onloadend = () => {
      loading = false;
      if (request.status === 200 && request.response) {
        update(request.response);
      } else if (request.status === 404) {
        warn("This provider does not exist any more. You see its last state.");
      } else {
        lost();
      }
      if (again) {
        again = false;
        load();
      }
    };
    request.send();
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

  function listen() {
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(lost, silence);
    };

    const events = new EventSource(base + "events");

    events.addEventListener("open", () => {
      alive();
      load(); // what has changed while there was no connection
    });
    events.addEventListener("changed", (event) => {
      alive();
      if (about === "*" || event.data.split(" ").includes(about)) load();
    });
    events.addEventListener("alive", (event) => {
      alive();
      warn(event.data);
    });
    events.addEventListener("error", () => {
      lost();
      // The browser reconnects by itself, unless the server has refused.
      if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    });
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
  if (base) {
    // A page that comes back from the browser's cache is old.
    addEventListener("pageshow", (event) => { if (event.persisted) load(); });
    listen();
  }
})();
