package ui

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// NewServer returns an HTTP server for a handler. Its limits of time do not end streams.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}

// Serve serves until the context ends. Pages that wait for updates are disconnected then.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := NewServer(handler)
	server.BaseContext = func(net.Listener) context.Context { return ctx }

	defer context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()

		if server.Shutdown(closing) != nil {
			_ = server.Close()
		}
	})()

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}
