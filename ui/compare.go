package ui

import (
	"context"
	"net/http"
	"strconv"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

// contextLines is the number of unchanged lines around changes.
const contextLines = 3

func (h *handler) compare(ctx context.Context, r *http.Request, view View) (any, error) {
	p, err := find(ctx, r, view)
	if err != nil {
		return nil, err
	}

	sides := facts.Sides{ContextLines: contextLines}

	if sides.From, err = number(r, "from"); err != nil {
		return nil, err
	}

	if sides.To, err = number(r, "to"); err != nil {
		return nil, err
	}

	var result facts.Comparison

	// A viewer who may not read the history may not read earlier revisions either.
	history, err := view.History(ctx, p)
	if current := (facts.Sides{ContextLines: contextLines}); err == nil || sides == current {
		result, err = view.Compare(ctx, p, sides)
	}

	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	problem := ""
	if err != nil {
		problem, result = "This cannot be compared: "+err.Error(), facts.Comparison{}
	}

	content := page.NewCompare(h.frame(), facts.NewProvider(p), sides, history, result)
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
		return 0, &RefusedError{
			Code: http.StatusBadRequest, Message: "The parameter " + name + " is not the number of a revision.",
		}
	}

	return found, nil
}
