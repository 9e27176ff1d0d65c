// Package longwait lets the callers of a function know that it is about to wait for something that takes long,
// such as a hook of a chart. They may then show that, or free what the function occupies meanwhile.
package longwait

import "context"

type contextKey struct{}

// With returns a context for a function. begin is called, in the function, before each long wait, with what it
// waits for. Those that the given context has already are called too.
func With(ctx context.Context, begin func(what string)) context.Context {
	outer := from(ctx)

	return context.WithValue(ctx, contextKey{}, func(what string) {
		begin(what)
		outer(what)
	})
}

// Begin is called before a long wait. It has no effect without With.
func Begin(ctx context.Context, what string) { from(ctx)(what) }

func from(ctx context.Context) func(string) {
	if begin, ok := ctx.Value(contextKey{}).(func(string)); ok {
		return begin
	}

	return func(string) {}
}
