package ui

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

// handler serves the pages.
type handler struct {
	Options

	streams, requests chan struct{}
}

// NewHandler returns a handler of all paths below the base.
func NewHandler(options Options) http.Handler {
	h := &handler{
		Options:  options,
		streams:  make(chan struct{}, maxStreams),
		requests: make(chan struct{}, maxRequests),
	}

	pages := http.NewServeMux()
	pages.Handle("GET /{$}", h.page(h.overview))
	pages.Handle("GET /providers/{kind}/{namespace}/{name}", h.page(h.provider))
	pages.Handle("GET /providers/{kind}/{namespace}/{name}/compare", h.page(h.compare))
	pages.Handle("GET /providers/{kind}/{namespace}/{name}/upgrade", h.page(h.preview))
	pages.Handle("GET /plan", h.page(h.plan))
	pages.Handle("GET /dependencies", h.page(h.dependencies))
	pages.HandleFunc("GET /events", h.events)
	pages.Handle("GET /static/", static())

	below := len(options.Base) - 1 // the slash remains

	return guard(http.StripPrefix(options.Base[:below], pages))
}

// static serves the style sheet, the script and the icon.
func static() http.Handler {
	files := http.StripPrefix("/static/", http.FileServerFS(page.Static()))

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r) // no list of files

			return
		}

		files.ServeHTTP(w, r)
	})
}

// render returns a page, which is a pointer to a struct of the package page.
type render func(ctx context.Context, r *http.Request, view View) (any, error)

// notFoundError reports that there is no such provider, or that the viewer may not see it.
type notFoundError struct{ name string }

func (e *notFoundError) Error() string {
	return "There is no provider " + e.name + ", or you may not read it."
}

// page serves a page. At most maxRequests are rendered at the same time.
func (h *handler) page(render render) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()

		release, err := h.admit(r, false)
		if err != nil {
			h.problem(w, err)
			return
		}
		defer release()

		if !h.acquire(ctx) {
			h.problem(w, &RefusedError{
				Code:    http.StatusServiceUnavailable,
				Message: "Too many pages are requested at the same time. Try again in a few seconds.",
			})

			return
		}
		defer func() { <-h.requests }()

		content, err := h.content(ctx, r, render)
		if err != nil {
			h.problem(w, err)
			return
		}

		h.write(w, http.StatusOK, content)
	})
}

// admit counts what the sender of a request uses, if the access limits that.
func (h *handler) admit(r *http.Request, stream bool) (release func(), err error) {
	if limited, ok := h.Access.(Admission); ok {
		return limited.Admit(r, stream)
	}

	return func() {}, nil
}

// content renders what the sender of a request may see.
func (h *handler) content(ctx context.Context, r *http.Request, render render) (any, error) {
	view, err := h.Access.View(r)
	if err != nil {
		return nil, err
	}

	content, err := render(ctx, r, view)
	if err != nil {
		return nil, err
	}

	personal, ok := view.(PersonalView)
	if !ok {
		return content, nil
	}

	viewer, err := personal.Viewer(ctx)
	content.(interface{ ShowTo(page.Viewer) }).ShowTo(viewer)

	return content, err
}

// acquire waits until another page may be rendered. It returns false if that takes too long.
func (h *handler) acquire(ctx context.Context) bool {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()

	select {
	case h.requests <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}

	return false
}

func (h *handler) write(w http.ResponseWriter, code int, content any) {
	html, err := page.Render(content)
	if err != nil {
		http.Error(w, "The page cannot be rendered.", http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(html)))
	w.WriteHeader(code)
	_, _ = w.Write(html) //nolint:gosec // the viewer may have left; templates escape all texts
}

// problem serves a page with an error.
func (h *handler) problem(w http.ResponseWriter, err error) {
	p := &page.Problem{Frame: h.frame(), Title: "The cluster cannot be read", Message: err.Error()}
	code := http.StatusBadGateway

	refused := new(RefusedError)
	missing := new(notFoundError)

	switch {
	case errors.As(err, &refused):
		p.Title = http.StatusText(refused.Code)
		code = refused.Code
		refused.addHeaders(w.Header())
	case errors.As(err, &missing):
		p.Title = "Provider not found"
		code = http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		p.Message = "The cluster did not answer in time. Check the connection, and reload the page."
		code = http.StatusGatewayTimeout
	}

	h.write(w, code, p)
}

func (h *handler) frame() page.Frame {
	return page.Frame{
		Base: h.Base, Cluster: h.Cluster, Now: time.Now(), Stale: h.Feed.stale(), Previews: h.Previews != nil,
	}
}

func (h *handler) overview(ctx context.Context, r *http.Request, view View) (any, error) {
	found, err := view.Providers(ctx)
	if err != nil {
		return nil, err
	}

	return page.NewOverview(h.frame(), page.NewFilter(r.URL.Query()), factsOf(found)), nil
}

func (h *handler) provider(ctx context.Context, r *http.Request, view View) (any, error) {
	p, err := find(ctx, r, view)
	if err != nil {
		return nil, err
	}

	v, err := view.Detailed(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}

		// The resource says more than an error page.
		v = facts.NewProvider(p)
		v.Release = p.GetStatus().Release
		v.Details = &facts.Details{Unknown: []string{"release and objects: " + err.Error()}}
	}

	note := ""

	history, err := view.History(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}

		history = facts.RecordedHistory(p)
		note = "This is the history in the status of the resource, because Helm's records cannot be read: " + err.Error()
	}

	content := page.NewProvider(h.frame(), v, history, note)

	return content, h.showRemoval(ctx, view, p, v, content)
}

// find returns the provider that the path of a request names.
func find(ctx context.Context, r *http.Request, view View) (v1alpha2.Provider, error) {
	found, err := view.Providers(ctx)
	if err != nil {
		return nil, err
	}

	kind, namespace, name := r.PathValue("kind"), r.PathValue("namespace"), r.PathValue("name")

	for _, p := range found {
		if string(p.ProviderType()) == kind && p.GetNamespace() == namespace && p.GetName() == name {
			return p, nil
		}
	}

	return nil, &notFoundError{name: kind + " " + namespace + "/" + name}
}
