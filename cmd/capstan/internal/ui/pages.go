package ui

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// readTimeout limits what is read from the cluster for one page.
const readTimeout = 20 * time.Second

// pages returns a handler of all paths below the base.
func (s *Site) pages() http.Handler {
	pages := http.NewServeMux()
	pages.Handle("GET /{$}", s.page(s.overview))
	pages.Handle("GET /providers/{kind}/{namespace}/{name}", s.page(s.provider))
	pages.Handle("GET /providers/{kind}/{namespace}/{name}/compare", s.page(s.compare))
	pages.Handle("GET /static/{file}", http.FileServerFS(staticFiles))

	return pages
}

// refusedError reports that a request was refused.
type refusedError struct {
	code    int
	message string
}

func (e *refusedError) Error() string { return e.message }

// page serves the page that a function returns a pointer to.
func (s *Site) page(content func(context.Context, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()

		shown, err := content(ctx, r)
		if err != nil {
			s.problem(w, err)
			return
		}

		write(w, http.StatusOK, shown)
	})
}

func write(w http.ResponseWriter, code int, page any) {
	html, err := render(page)
	if err != nil {
		http.Error(w, "The page cannot be rendered.", http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(html)))
	w.WriteHeader(code)
	_, _ = w.Write(html) // the user may have left
}

// problem serves a page with an error.
func (s *Site) problem(w http.ResponseWriter, err error) {
	p := &Problem{Frame: s.frame(), Title: "The cluster cannot be read", Message: err.Error()}
	code := http.StatusBadGateway

	refused := new(refusedError)

	switch {
	case errors.As(err, &refused):
		p.Title = http.StatusText(refused.code)
		code = refused.code
	case errors.Is(err, context.DeadlineExceeded):
		p.Message = "The cluster did not answer in time. Check the connection, and reload the page."
		code = http.StatusGatewayTimeout
	}

	write(w, code, p)
}

func (s *Site) frame() Frame {
	return Frame{Base: s.base(), Cluster: s.cluster, Now: time.Now()}
}

func (s *Site) overview(ctx context.Context, _ *http.Request) (any, error) {
	found, err := s.reader.Providers(ctx)
	if err != nil {
		return nil, err
	}

	providers := make([]view.Provider, 0, len(found))
	for _, p := range found {
		providers = append(providers, view.NewProvider(p))
	}

	return newOverview(s.frame(), providers), nil
}

func (s *Site) provider(ctx context.Context, r *http.Request) (any, error) {
	p, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	v, err := s.reader.Detailed(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}

		// The resource says more than an error page.
		v = view.NewProvider(p)
		v.Details = &view.Details{Unknown: []string{"release and objects: " + err.Error()}}
	}

	if len(v.Unread) > 0 {
		v.Details.Unknown = append(v.Details.Unknown, "objects that you may not get: "+strings.Join(v.Unread, ", "))
	}

	note := ""

	history, err := s.reader.History(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}

		history = view.RecordedHistory(p)
		note = "This is the history in the status of the resource, because Helm's records cannot be read: " + err.Error()
	}

	return newProvider(s.frame(), v, history, note), nil
}

func (s *Site) compare(ctx context.Context, r *http.Request) (any, error) {
	p, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}

	var sides view.Sides

	if sides.From, err = number(r, "from"); err != nil {
		return nil, err
	}

	if sides.To, err = number(r, "to"); err != nil {
		return nil, err
	}

	var result view.Comparison

	history, err := s.reader.History(ctx, p)
	if err == nil {
		result, err = s.reader.Compare(ctx, p, sides)
	}

	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	problem := ""
	if err != nil {
		problem, result = "This cannot be compared: "+err.Error(), view.Comparison{}
	}

	content := newCompare(s.frame(), view.NewProvider(p), sides, history, result)
	content.Problem = problem

	return content, nil
}

// number returns a parameter of a request that is the number of a revision; 0 if it is empty.
func number(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}

	found, err := strconv.Atoi(text)
	if err != nil || found < 0 {
		return 0, &refusedError{
			http.StatusBadRequest, "The parameter " + name + " is not the number of a revision.",
		}
	}

	return found, nil
}

// find returns the provider that the path of a request names.
func (s *Site) find(ctx context.Context, r *http.Request) (v1alpha2.Provider, error) {
	found, err := s.reader.Providers(ctx)
	if err != nil {
		return nil, err
	}

	kind, namespace, name := r.PathValue("kind"), r.PathValue("namespace"), r.PathValue("name")

	for _, p := range found {
		if string(p.ProviderType()) == kind && p.GetNamespace() == namespace && p.GetName() == name {
			return p, nil
		}
	}

	return nil, &refusedError{
		http.StatusNotFound, "There is no provider " + kind + " " + namespace + "/" + name + ".",
	}
}
