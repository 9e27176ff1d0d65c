package oci

import (
	"errors"
	"net/http"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// isBlob reports whether a request reads a blob by its digest.
func isBlob(req *http.Request) bool {
	_, after, found := strings.Cut(req.URL.Path, "/blobs/")
	return found && strings.HasPrefix(after, "sha") && (req.Method == http.MethodGet || req.Method == http.MethodHead)
}

// diagnoseRefusal returns the message for a connection or redirect that is refused, or "" if that is
// not the cause.
func diagnoseRefusal(err error) string {
	var (
		address  *web.AddressError
		redirect *web.RedirectError
	)

	switch {
	case errors.As(err, &address):
		return address.Error()
	case errors.As(err, &redirect):
		return redirect.Error()
	}

	return ""
}
